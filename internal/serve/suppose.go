package serve

import (
	"context"
	"fmt"
	"net/url"

	"github.com/eppctl/eppctl/internal/core/pick"
)

// What a question to explain may suppose stands in its query:
//
//	set=POD.FIELD=VALUE   an input of a pod
//	weight=KEY=VALUE      a constant of weights, by its key or its term
//	without=POD           a pod is not there
//
// Each may come several times. Whatever is supposed, nothing is changed.

// maxSuppositions bounds them: a question names a handful.
const maxSuppositions = 256

// suppositions reads them; nil = none.
func suppositions(q url.Values) (*pick.WhatIf, error) {
	w := &pick.WhatIf{Without: q["without"]}
	if n := len(q["set"]) + len(q["weight"]) + len(q["without"]); n > maxSuppositions {
		return nil, fmt.Errorf("found %d suppositions; at most %d are taken", n, maxSuppositions)
	}
	for _, text := range q["set"] {
		x, err := pick.ParseInput(text)
		if err != nil {
			return nil, fmt.Errorf("set: %w", err)
		}
		w.Inputs = append(w.Inputs, x)
	}
	for _, text := range q["weight"] {
		x, err := pick.ParseWeight(text)
		if err != nil {
			return nil, fmt.Errorf("weight: %w", err)
		}
		w.Weights = append(w.Weights, x)
	}
	if w.Empty() {
		return nil, nil
	}
	return w, nil
}

// reason completes an explanation by what would change the decision, and by what is
// supposed of it. It works on the card alone, so that a pick that was made can be
// asked as well, and it takes the one place that explanations have: it is some hundred
// decisions.
func (p *Picker) reason(ctx context.Context, x *pick.Explanation, c *pick.Card, w *pick.WhatIf) (err error) {
	if !occupy(ctx, p.slots.aside) {
		return ctx.Err()
	}
	defer func() { <-p.slots.aside }()
	x.Flip = c.ExplainFlips()
	if w != nil {
		x.WhatIf, err = c.ExplainWhatIf(w)
	}
	return err
}
