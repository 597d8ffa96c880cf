package view

import "fmt"

// ParityStates are the words of Parity.State.
var ParityStates = [...]string{"passed", "failed", "not-run"}

// Parity is what comparing a native tokenizer's ids with those of engines found. Its
// probes are texts of our own; nothing of a client's prompt is in it.
type Parity struct {
	State  string `json:"state"`            // see ParityStates
	Why    string `json:"why,omitempty"`    // reason word of a state that is not passed
	Detail string `json:"detail,omitempty"` // the same in words: the first difference, the error
	Engine string `json:"engine,omitempty"` // whose ids are told of here: the one that differs, or was asked last
	// Probe is the first of that engine's probes that differed, and DiffersAt the
	// position, from 0, of its first id that did. Where events differ it is the position
	// in the last routed request of which it is known, DiffersBlock the block of the
	// engine's size that it is in, from 0, which may be known alone, and there is no Probe.
	// null = none differs, or where is not known.
	Probe        string `json:"probe,omitempty"`
	DiffersAt    *int   `json:"differs_at"`
	DiffersBlock *int   `json:"differs_block"`
	// Of the probes that engine was asked: how many were compared, how many of these
	// differed, and how many could not be compared.
	Compared int `json:"compared"`
	Differed int `json:"differed"`
	Skipped  int `json:"skipped"`
	// AgeMs is how long ago that was; null = never.
	AgeMs    *int64         `json:"age_ms"`
	Requests ParityRequests `json:"requests"`
}

// ParityRequests counts routed requests by what the engines' events said of their ids.
type ParityRequests struct {
	Equal   uint64 `json:"equal"`
	Differs uint64 `json:"differs"`
	Unseen  uint64 `json:"unseen"`  // the engine announced blocks of something else
	Unknown uint64 `json:"unknown"` // nothing can be said
}

// String is the state as people read it: "passed 21 of 21", "failed(1 of 21)".
func (p *Parity) String() string {
	switch {
	case p.State == "passed":
		return fmt.Sprintf("passed %d of %d", p.Compared, p.Compared)
	case p.State == "failed" && p.Differed > 0:
		return fmt.Sprintf("failed(%d of %d)", p.Differed, p.Compared)
	case p.Why != "":
		return p.State + "(" + p.Why + ")"
	}
	return p.State
}
