package pick

import "github.com/eppctl/eppctl/internal/core/view"

// Explanation is a card on the wire: what `explain -o json` prints and the admin
// API returns. Fields are only ever added. Unknown is null and never 0, no number
// is NaN or infinite, lists are never null, 64-bit hashes are hex strings, and
// nothing of the prompt but its length is in it, unless the asker wants
// its token ids.
type Explanation struct {
	APIVersion string `json:"apiVersion"` // "eppctl/v1"
	Kind       string `json:"kind"`       // "Explanation"
	RequestID  string `json:"request_id"`
	At         string `json:"at"`     // RFC 3339, of the decision
	Source     string `json:"source"` // "live"; "recorded" of a pick that was made; "recording" of a fleet played back
	Epoch      uint64 `json:"epoch"`  // of the pod set

	Model string  `json:"model"` // as the request names it
	Base  *string `json:"base"`  // what it means; null = no table has it: routed by load
	LoRA  *string `json:"lora"`
	// Tokens of the prompt, or of all Prompts together; TokensExact false marks an
	// estimate. The block counts are those of the deepest match's block size; null of
	// several prompts, each of which ends in a rest of its own.
	Tokens int `json:"tokens"`
	// Prompts is how many the request has; absent of one.
	Prompts     int     `json:"prompts,omitempty"`
	TokensExact bool    `json:"tokens_exact"`
	Blocks      *int    `json:"blocks"`
	BlockSize   *int    `json:"block_size"`
	TailTokens  *int    `json:"tail_tokens"`
	Unmatched   *string `json:"unmatched"` // why nothing could be matched anywhere

	Tokenizer ExplainedTokenizer `json:"tokenizer"`
	// Prompt has the token ids of a question whose asker wanted to see them; absent
	// otherwise, and of past picks always.
	Prompt *ExplainedPrompt `json:"prompt,omitempty"`

	Unit    string           `json:"unit"`   // "s"
	Better  string           `json:"better"` // "higher"
	Weights ExplainedWeights `json:"weights"`
	Pods    []ExplainedPod   `json:"pods"` // candidates by rank, then the others in order of ID
	Pick    ExplainedPick    `json:"pick"`
	// Flip are the smallest single changes that would change the winner, the most
	// telling first; absent unless somebody asked why.
	Flip *[]ExplainedFlip `json:"flip,omitempty"`
	// WhatIf is what would have been, of a question that supposes something.
	WhatIf *ExplainedWhatIf `json:"what_if,omitempty"`
	// Set by whoever measured them: from the whole body to the decision, which is
	// reading it, its token ids and waiting for a processor; and the decision.
	ReadUs   *float64 `json:"read_us"`
	DecideUs *float64 `json:"decide_us"`
}

// ExplainedTokenizer says who told the token ids.
type ExplainedTokenizer struct {
	// "body", "native", "render" or "tokenize"; "bytes": nobody, and pods are
	// preferred that such bytes were sent to; null: nobody.
	Provider *string `json:"provider"`
	Status   *string `json:"status"` // "exact" or "unverified"; null without ids
	// Parity is what comparing ids of this provider with engines' has found; absent
	// unless they are native, and of past picks.
	Parity *view.Parity `json:"parity,omitempty"`
	// Split is the splitter of native ids, likewise: the name of a hand-written one, or
	// "regex", for a pattern that goes through a general engine and is slower.
	Split string `json:"split,omitempty"`
	// Cut tells that the prompt is matched up to its first image, sound or video, since
	// nobody told its name; absent otherwise.
	Cut bool `json:"cut,omitempty"`
	// Tried are the providers that could not tell, in order.
	Tried []ExplainedAttempt `json:"tried"`
}

// ExplainedPrompt is a prompt in token ids.
type ExplainedPrompt struct {
	IDs []uint32 `json:"token_ids"`
	// Further are the prompts behind the first, in order; absent of one.
	Further [][]uint32 `json:"further_token_ids,omitempty"`
	// Cut is the first position whose content neither ids nor media determine; null = none.
	Cut *int `json:"cut"`
	// Media are the images, sounds and videos before it, as far as the engine names them.
	Media []ExplainedItem `json:"media,omitempty"`
	// BlockSize is that of the pod picked: its blocks begin at every multiple.
	BlockSize *int `json:"block_size"`
	// Files are those that native ids were made with.
	Files *view.TokenizerFiles `json:"files,omitempty"`
}

// ExplainedItem is where an image, a sound or a video stands in a prompt, in tokens. Its
// name is the engine's digest of the content, and not told.
type ExplainedItem struct {
	Offset int `json:"offset"`
	Length int `json:"length"`
}

// ExplainedAttempt is a provider that could not tell.
type ExplainedAttempt struct {
	Provider string  `json:"provider"`
	Reason   string  `json:"reason"`
	Detail   *string `json:"detail"` // the same in words, where there are any
}

// ExplainedWeights are the constants of the decision, seconds unless the name
// says otherwise.
type ExplainedWeights struct {
	Alpha        float64 `json:"alpha"`
	Delay        float64 `json:"delay"`
	Pool         float64 `json:"pool"`
	Beta         float64 `json:"beta"`
	Upsilon      float64 `json:"upsilon"`
	Breaker      Breaker `json:"breaker"`
	PrefillRate  float64 `json:"prefill_tokens_per_second"` // as used: configured, and learned
	Configured   float64 `json:"configured_tokens_per_second"`
	LearnedSure  float64 `json:"learned_sure"`   // 0 = nothing was learned, to 1
	ColdPrefillS float64 `json:"cold_prefill_s"` // of this prompt on the reference
}

// ExplainedPod is one row.
type ExplainedPod struct {
	Name    string           `json:"name"`
	Addr    string           `json:"addr"`
	Verdict string           `json:"verdict"` // "scored" or "filtered"
	Filter  *ExplainedFilter `json:"filter"`  // of a scored pod: the soft filter that had to be ignored
	Match   ExplainedMatch   `json:"match"`
	Reason  *string          `json:"reason"` // why nothing matched
	Terms   []ExplainedTerm  `json:"terms"`
	Total   *float64         `json:"total"`
	Rank    *int             `json:"rank"`

	Circuit     ExplainedCircuit `json:"circuit"`
	Age         ExplainedAge     `json:"age_ms"`
	Telemetry   string           `json:"telemetry"`     // fresh, stale, unknown
	IndexState  string           `json:"index_state"`   // of the matched rank's event stream, see view.SyncState
	Missing     uint64           `json:"index_missing"` // in a gap: batches to be had
	IndexWhy    *string          `json:"index_why"`     // reason word, null while live
	IndexDetail *string          `json:"index_detail"`  // the same in words
	Lost        uint64           `json:"gap"`           // event batches lost and not replayed
	TieWeight   *string          `json:"tie_weight"`
}

// ExplainedFilter says what left a pod out.
type ExplainedFilter struct {
	Name  string   `json:"name"`
	Value *float64 `json:"value"`
	Limit *float64 `json:"limit"`
	Unit  *string  `json:"unit"`
	Why   *string  `json:"why"`
	Probe *float64 `json:"probe_s,omitempty"` // of a failing pod: until a request is tried there, 0 = one is
}

// ExplainedCircuit is what the endings of the pod's requests say of it.
type ExplainedCircuit struct {
	State    string   `json:"state"`           // closed, open, half-open
	Errors   int      `json:"errors_in_a_row"` // server errors
	Lost     int      `json:"lost_in_a_row"`   // unanswered, since the pod was full
	Answered int      `json:"answered"`        // since the pod came, or came back
	Probing  int      `json:"probing"`         // probes under way
	Probe    *float64 `json:"probe_s"`         // until the next one may be placed; null = closed
}

// ExplainedMatch counts blocks of the prompt on the pod, by fastest tier; of several
// prompts it is the sum.
type ExplainedMatch struct {
	GPU      int  `json:"gpu"`
	Host     int  `json:"host"`
	Disk     int  `json:"disk"`
	Remote   int  `json:"remote"`
	Expected int  `json:"expected"` // in flight, not announced yet
	Depth    int  `json:"depth"`    // all of these
	Size     *int `json:"block_size"`
	Tokens   int  `json:"cached_tokens"` // what the engine will not compute again
	// Approximate: cached_tokens is estimated from where such bytes were sent before,
	// and no event says so.
	Approximate bool `json:"approximate,omitempty"`
	Rank        *int `json:"rank"`
	// RankWhy: "rank-by-engine", the engine chooses the rank and what one has counts by
	// the chance to get there; "rank-busy", another rank than the one that has most.
	RankWhy *string `json:"rank_reason,omitempty"`
}

// ExplainedTerm is one contribution.
type ExplainedTerm struct {
	Name    string         `json:"name"`
	Seconds float64        `json:"seconds"`
	Zero    *string        `json:"zero"` // why it is 0, null = it is not
	Inputs  map[string]any `json:"inputs"`
}

// ExplainedAge is how old a row's inputs were at the decision; null = never.
type ExplainedAge struct {
	Metrics    *float64 `json:"metrics"`
	Events     *float64 `json:"events"`
	IndexState *float64 `json:"index_state"` // since the state was entered
	// Cleared is since the engine lost what it had of the prompt, of the reason
	// "cleared"; absent where that came by a replay, and when is not known.
	Cleared *float64 `json:"cleared,omitempty"`
}

// ExplainedPick is the outcome.
type ExplainedPick struct {
	Outcome  string       `json:"outcome"`
	Why      *string      `json:"why"`
	Pod      *string      `json:"pod"`
	Addr     *string      `json:"addr"`
	Rank     *int         `json:"rank"` // data-parallel rank the request is for; null = the engine's choice, or nothing is known of it
	Margin   *float64     `json:"margin"`
	RunnerUp *string      `json:"runner_up"`
	Tie      ExplainedTie `json:"tie"`
}

// ExplainedTie is the part that chance had.
type ExplainedTie struct {
	Used   bool     `json:"used"`
	Window float64  `json:"window"`
	Size   int      `json:"size"`
	Order  []string `json:"order"` // tied pods by falling rendezvous weight
}
