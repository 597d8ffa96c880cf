package parity

// Thresholds of a Tally. They are set so that what can happen by chance at equal ids
// does not reach them: over the captures of vLLM 0.23.0 and 0.32.0 and SGLang 0.5.23
// no request differs and none is unseen (TestCaptures).
const (
	window     = 256 // judged requests that are remembered
	fewDiffer  = 3   // of these, for the ids to count as different
	manyUnseen = 16  // in a row, with no equal one in between, for the same
)

// Tally sums up verdicts on one model. The zero value is empty; it is not safe for
// concurrent use.
type Tally struct {
	Total  [Unseen + 1]uint64 // by verdict, since the start
	recent [window]bool       // differs; the last judged requests, circular
	n      uint64             // of them, ever
	differ int                // in recent
	unseen int                // in a row
	parted *Judged            // see Parted
}

// Add counts a verdict.
func (t *Tally) Add(j Judged) {
	v := j.Verdict
	t.Total[v]++
	switch v {
	case Equal, Differs:
		at := t.n % window
		if t.recent[at] {
			t.differ--
		}
		t.recent[at] = v == Differs
		if v == Differs {
			t.differ++
		}
		t.n++
		t.unseen = 0
	case Unseen:
		t.unseen++
	}
	switch {
	case t.differ == 0 && t.unseen == 0:
		t.parted = nil
	case j.Block >= 0 && (v == Differs || v == Unseen && t.differ == 0) && (j.At >= 0 || t.parted == nil || t.parted.At < 0):
		t.parted = &j
	}
}

// Parted is the last request that speaks against the ids and of which it is known where
// they part, nil = there is none. One that was not seen may be one that the engine held:
// it is no match for one that differs, and a block alone is none for a position.
func (t *Tally) Parted() *Judged { return t.parted }

// Recent is how many of the last judged requests differed, and how many there are.
func (t *Tally) Recent() (differ, of int) { return t.differ, int(min(t.n, window)) }

// Failed reports that what engines announce is not what was computed here.
func (t *Tally) Failed() bool { return t.differ >= fewDiffer || t.unseen >= manyUnseen }

// Forget begins anew, when other files or another engine are compared.
func (t *Tally) Forget() { *t = Tally{Total: t.Total} }
