package recording

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
)

// What serve decided, in three kinds of records: over which pods and weights
// (Fleet), what about a request (Decision), and what became of it (Outcome). They
// hold no prompt: block hashes are keyed by a secret that stands nowhere.

// Fleet is the body of a TypeFleet: what holds for the decisions behind it.
type Fleet struct {
	// Run tells one key of the hashes from another: hashes of two runs have
	// nothing to do with each other.
	Run  string     `json:"run"`
	Pods []FleetPod `json:"pods"`
	// Terms are the names of a decision's terms, in order.
	Terms []string `json:"terms"`
	// Weights are the constants of the decision, as the section of eppctl.yaml
	// names them.
	Weights map[string]float64 `json:"weights"`
	// BlockTokens is how many tokens lie between two hashes of a prompt.
	BlockTokens int   `json:"block_tokens"`
	ScrapeMs    int64 `json:"scrape_interval_ms"`
}

// FleetPod is one of them.
type FleetPod struct {
	Name       string `json:"name"`
	BlockSize  int    `json:"block_size,omitempty"`  // tokens, 0 = not known
	PoolTokens int    `json:"pool_tokens,omitempty"` // of its KV cache, 0 = not told
}

// Decision is the body of a TypeDecision. The record's time is when it was made.
type Decision struct {
	// N counts the decisions of a run; an Outcome names it.
	N      uint64 `json:"n"`
	PickID string `json:"pick_id,omitempty"`
	// Request is a keyed hash of the request id, which clients choose.
	Request string `json:"request"`
	Model   string `json:"model,omitempty"` // that the fleet serves, "" = another
	Adapter string `json:"adapter,omitempty"`
	Tokens  int    `json:"tokens"` // of the prompt
	Exact   bool   `json:"exact"`  // counted, not estimated
	// Unmatched says why there are no hashes, "" = there may be.
	Unmatched string `json:"unmatched,omitempty"`
	// Blocks are the hashes of the prompt's full blocks, each of all tokens up to
	// its end.
	Blocks Hashes `json:"blocks,omitempty"`
	Picked int    `json:"picked"`           // of Fleet.Pods, -1 = refused
	Status int    `json:"status,omitempty"` // of the refusal
	Tie    bool   `json:"tie,omitempty"`
	Cached int    `json:"cached"` // tokens that the picked pod was taken to hold
	// Scores are the terms of each of Fleet.Pods, in seconds, one pod behind the
	// other; NaN for those that were no candidates.
	Scores Scores `json:"scores,omitempty"`
}

// Outcome is the body of a TypeOutcome. The record's time is the request's end.
type Outcome struct {
	N      uint64 `json:"n"`
	Status int    `json:"status,omitempty"` // of the answer, 0 = none was seen
	Pod    string `json:"pod,omitempty"`    // that served it, if another than picked
	// FirstMs is the time from the decision to the first byte of a streamed answer,
	// null where it was not seen; TookMs to the end.
	FirstMs *float64 `json:"first_ms"`
	TookMs  float64  `json:"took_ms"`
	// What the engine reported, null where it was not seen.
	Prompt *int `json:"prompt_tokens"`
	Output *int `json:"output_tokens"`
	Cached *int `json:"cached_tokens"`
}

// Hashes stand in JSON as base64 of eight bytes each, big-endian.
type Hashes []uint64

// Scores stand in JSON as base64 of four bytes each, big-endian IEEE 754.
type Scores []float32

// Caps of what is read. The writer keeps within them.
const (
	// MaxBlocks of one prompt: four million tokens in blocks of 16.
	MaxBlocks = 1 << 18
	// MaxFleet are the pods of one Fleet, maxTerms the terms of one pod.
	MaxFleet = 1 << 14
	maxTerms = 64
	// maxBlockTokens: the largest block of an engine known so far has 768.
	maxBlockTokens = 1 << 16
	maxTokens      = 1 << 30
	maxNameBytes   = 4 << 10

	// maxFleetBody holds MaxFleet pods with names of 200 bytes; maxDecisionBody the
	// largest hashes and scores; maxOutcomeBody a handful of numbers and a name.
	maxFleetBody    = 4 << 20
	maxDecisionBody = 16 << 20
	maxOutcomeBody  = 64 << 10
)

// MarshalText implements encoding.TextMarshaler.
func (h Hashes) MarshalText() ([]byte, error) {
	b := make([]byte, 0, 8*len(h))
	for _, x := range h {
		b = binary.BigEndian.AppendUint64(b, x)
	}
	return base64.StdEncoding.AppendEncode(nil, b), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (h *Hashes) UnmarshalText(text []byte) error {
	b, err := packed(text, 8, MaxBlocks)
	if err != nil {
		return fmt.Errorf("hashes: %w", err)
	}
	*h = make(Hashes, len(b)/8)
	for i := range *h {
		(*h)[i] = binary.BigEndian.Uint64(b[8*i:])
	}
	return nil
}

// MarshalText implements encoding.TextMarshaler.
func (s Scores) MarshalText() ([]byte, error) {
	b := make([]byte, 0, 4*len(s))
	for _, x := range s {
		b = binary.BigEndian.AppendUint32(b, math.Float32bits(x))
	}
	return base64.StdEncoding.AppendEncode(nil, b), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Scores) UnmarshalText(text []byte) error {
	b, err := packed(text, 4, MaxFleet*maxTerms)
	if err != nil {
		return fmt.Errorf("scores: %w", err)
	}
	*s = make(Scores, len(b)/4)
	for i := range *s {
		(*s)[i] = math.Float32frombits(binary.BigEndian.Uint32(b[4*i:]))
	}
	return nil
}

// packed is the base64 of at most most items of some bytes each.
func packed(text []byte, size, most int) ([]byte, error) {
	if n := base64.StdEncoding.DecodedLen(len(text)) / size; n > most+1 {
		return nil, fmt.Errorf("found %d; expected at most %d", n, most)
	}
	b, err := base64.StdEncoding.AppendDecode(nil, text)
	switch {
	case err != nil:
		return nil, fmt.Errorf("found no base64: %w", err)
	case len(b)%size != 0 || len(b)/size > most:
		return nil, fmt.Errorf("found %d bytes; expected at most %d times %d", len(b), most, size)
	}
	return b, nil
}

// unmarshal reads a body of at most most bytes.
func unmarshal(body []byte, most int, into any) error {
	if len(body) > most {
		return fmt.Errorf("found %d bytes; expected at most %d", len(body), most)
	}
	return json.Unmarshal(body, into)
}

// ParseFleet reads the body of a TypeFleet.
func ParseFleet(body []byte) (*Fleet, error) {
	f := &Fleet{}
	if err := unmarshal(body, maxFleetBody, f); err != nil {
		return nil, fmt.Errorf("fleet: %w", err)
	}
	switch {
	case len(f.Pods) == 0 || len(f.Pods) > MaxFleet:
		return nil, fmt.Errorf("fleet: found %d pods; expected 1 to %d", len(f.Pods), MaxFleet)
	case len(f.Terms) == 0 || len(f.Terms) > maxTerms:
		return nil, fmt.Errorf("fleet: found %d terms; expected 1 to %d", len(f.Terms), maxTerms)
	case f.BlockTokens < 1 || f.BlockTokens > maxBlockTokens:
		return nil, fmt.Errorf("fleet: found blocks of %d tokens; expected 1 to %d", f.BlockTokens, maxBlockTokens)
	case f.ScrapeMs < 0 || len(f.Run) > maxNameBytes:
		return nil, fmt.Errorf("fleet: found a scrape interval of %d ms and a run of %d bytes", f.ScrapeMs, len(f.Run))
	}
	for _, p := range f.Pods {
		if len(p.Name) > maxNameBytes || p.BlockSize < 0 || p.BlockSize > maxBlockTokens || p.PoolTokens < 0 || p.PoolTokens > maxTokens {
			return nil, fmt.Errorf("fleet: pod %.40q: found blocks of %d tokens and a pool of %d", p.Name, p.BlockSize, p.PoolTokens)
		}
	}
	return f, nil
}

// ParseDecision reads the body of a TypeDecision behind a fleet.
func ParseDecision(body []byte, f *Fleet) (*Decision, error) {
	d := &Decision{}
	if err := unmarshal(body, maxDecisionBody, d); err != nil {
		return nil, fmt.Errorf("decision: %w", err)
	}
	switch full := len(d.Blocks) * f.BlockTokens; {
	case d.Tokens < 0 || d.Tokens > maxTokens || d.Cached < 0 || d.Cached > maxTokens:
		return nil, fmt.Errorf("decision %d: found %d tokens, %d of them cached", d.N, d.Tokens, d.Cached)
	case full > d.Tokens:
		return nil, fmt.Errorf("decision %d: found %d blocks of %d tokens in a prompt of %d", d.N, len(d.Blocks), f.BlockTokens, d.Tokens)
	case d.Picked < -1 || d.Picked >= len(f.Pods):
		return nil, fmt.Errorf("decision %d: found pod %d of a fleet of %d", d.N, d.Picked, len(f.Pods))
	case len(d.Scores) != 0 && len(d.Scores) != len(f.Pods)*len(f.Terms):
		return nil, fmt.Errorf("decision %d: found %d scores; expected %d terms of %d pods", d.N, len(d.Scores), len(f.Terms), len(f.Pods))
	case len(d.Model) > maxNameBytes || len(d.Adapter) > maxNameBytes:
		return nil, fmt.Errorf("decision %d: found a name of more than %d bytes", d.N, maxNameBytes)
	}
	return d, nil
}

// ParseOutcome reads the body of a TypeOutcome.
func ParseOutcome(body []byte) (*Outcome, error) {
	o := &Outcome{}
	if err := unmarshal(body, maxOutcomeBody, o); err != nil {
		return nil, fmt.Errorf("outcome: %w", err)
	}
	const week = 7 * 24 * 3600e3
	if !(o.TookMs >= 0 && o.TookMs <= week) || o.FirstMs != nil && !(*o.FirstMs >= 0 && *o.FirstMs <= week) {
		return nil, fmt.Errorf("outcome of %d: found times that are none", o.N)
	}
	for _, n := range []*int{o.Prompt, o.Output, o.Cached} {
		if n != nil && (*n < 0 || *n > maxTokens) {
			return nil, fmt.Errorf("outcome of %d: found %d tokens", o.N, *n)
		}
	}
	return o, nil
}
