package pick

import "math"

// ExplainedWhatIf is what the decision would have been, if: the same decision over
// the same inputs, but for those named.
type ExplainedWhatIf struct {
	Overrides []ExplainedOverride `json:"overrides"`
	Moved     []ExplainedMove     `json:"moved"` // terms that are others than before; a pod that was or is left out has none
	Weights   ExplainedWeights    `json:"weights"`
	Pods      []ExplainedPod      `json:"pods"` // as those of the decision
	Pick      ExplainedPick       `json:"pick"`
}

// ExplainedOverride is one thing that was supposed: an input of a pod, a weight, or
// that a pod is not there.
type ExplainedOverride struct {
	Kind  string   `json:"kind"` // "input", "weight", "without"
	Pod   *string  `json:"pod"`
	Field *string  `json:"field"` // of the input, or key of the weight
	Unit  *string  `json:"unit"`
	Now   *float64 `json:"now"` // null = not known
	Value *float64 `json:"value"`
}

// ExplainedMove is a term before and after.
type ExplainedMove struct {
	Pod  string  `json:"pod"`
	Term string  `json:"term"`
	From float64 `json:"from"` // seconds
	To   float64 `json:"to"`
}

// ExplainedFlip is the smallest change of one number that gives the request to
// another pod, everything else held.
type ExplainedFlip struct {
	Pod    *string `json:"pod"`   // null = a weight
	Field  string  `json:"field"` // input, or key of the weight
	Unit   *string `json:"unit"`
	Now    float64 `json:"now"`
	At     float64 `json:"at"`
	Winner string  `json:"winner"`
}

// ExplainFlips turns the card's flips into their wire form; never nil.
func (c *Card) ExplainFlips() *[]ExplainedFlip {
	list := []ExplainedFlip{}
	for _, f := range c.Flips() {
		list = append(list, ExplainedFlip{
			Pod: text(f.Pod), Field: f.Field, Unit: text(f.Unit), Now: f.Now, At: f.At, Winner: f.Winner,
		})
	}
	return &list
}

// ExplainWhatIf is the wire form of what the decision would have been, if. The errors
// are those of Suppose.
func (c *Card) ExplainWhatIf(w *WhatIf) (*ExplainedWhatIf, error) {
	var then Card
	if err := Suppose(c, w, &then); err != nil {
		return nil, err
	}
	x := then.Explanation()
	return &ExplainedWhatIf{
		Overrides: c.overrides(w), Moved: c.moved(&then), Weights: x.Weights, Pods: x.Pods, Pick: x.Pick,
	}, nil
}

func (c *Card) overrides(w *WhatIf) (list []ExplainedOverride) {
	for _, x := range w.Inputs {
		f := inputField(x.Field)
		o := ExplainedOverride{Kind: "input", Pod: &x.Pod, Field: &x.Field, Unit: &f.unit, Value: number(x.Value)}
		if now, known := f.now(c.row(x.Pod)); known {
			o.Now = number(now)
		}
		list = append(list, o)
	}
	for _, x := range w.Weights {
		now, _ := c.basis.policy.Weight(x.Key)
		list = append(list, ExplainedOverride{Kind: "weight", Field: &x.Key, Now: number(now), Value: number(x.Value)})
	}
	for _, name := range w.Without {
		list = append(list, ExplainedOverride{Kind: "without", Pod: &name})
	}
	return list
}

// moved lists the terms that differ, in order of the pods.
func (c *Card) moved(then *Card) []ExplainedMove {
	list := []ExplainedMove{}
	for i := range c.Rows {
		a, b := &c.Rows[i], &then.Rows[i]
		if !a.Candidate || !b.Candidate {
			continue
		}
		for t := range terms {
			if differ(a.Terms[t], b.Terms[t]) {
				list = append(list, ExplainedMove{a.Pod.Spec.Name, terms[t].name, finite(a.Terms[t]), finite(b.Terms[t])})
			}
		}
	}
	return list
}

// differ reports that two times, in seconds, are not the same to the nanosecond: what is
// less is of the order in which floats were added.
func differ(a, b float64) bool { return a != b && !(math.Abs(a-b) < 1e-9) }
