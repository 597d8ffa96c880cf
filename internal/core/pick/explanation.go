package pick

// Explanation is a card on the wire: what `explain -o json` prints and the admin
// API returns. Fields are only ever added. Unknown is null and never 0, no number
// is NaN or infinite, lists are never null, 64-bit hashes are hex strings, and
// nothing of the prompt but its length is in it.
type Explanation struct {
	APIVersion string `json:"apiVersion"` // "eppctl/v1"
	Kind       string `json:"kind"`       // "Explanation"
	RequestID  string `json:"request_id"`
	At         string `json:"at"`     // RFC 3339, of the decision
	Source     string `json:"source"` // "live"; "recorded" of a pick that was made
	Epoch      uint64 `json:"epoch"`  // of the pod set

	Model string  `json:"model"` // as the request names it
	Base  *string `json:"base"`  // what it means; null = no table has it: routed by load
	LoRA  *string `json:"lora"`
	// Tokens of the prompt; TokensExact false marks an estimate. The block counts
	// are those of the deepest match's block size.
	Tokens      int     `json:"tokens"`
	TokensExact bool    `json:"tokens_exact"`
	Blocks      *int    `json:"blocks"`
	BlockSize   *int    `json:"block_size"`
	TailTokens  *int    `json:"tail_tokens"`
	Unmatched   *string `json:"unmatched"` // why nothing could be matched anywhere

	Unit     string           `json:"unit"`   // "s"
	Better   string           `json:"better"` // "higher"
	Weights  ExplainedWeights `json:"weights"`
	Pods     []ExplainedPod   `json:"pods"` // candidates by rank, then the others in order of ID
	Pick     ExplainedPick    `json:"pick"`
	DecideUs *float64         `json:"decide_us"` // set by whoever measured it
}

// ExplainedWeights are the constants of the decision, seconds unless the name
// says otherwise.
type ExplainedWeights struct {
	Alpha        float64 `json:"alpha"`
	Pool         float64 `json:"pool"`
	Beta         float64 `json:"beta"`
	Upsilon      float64 `json:"upsilon"`
	Breaker      Breaker `json:"breaker"`
	PrefillRate  float64 `json:"prefill_tokens_per_second"`
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

	Age        ExplainedAge `json:"age_ms"`
	Telemetry  string       `json:"telemetry"` // fresh, stale, unknown
	IndexState string       `json:"index_state"`
	IndexWhy   *string      `json:"index_why"`
	Lost       uint64       `json:"gap"` // event batches lost and not replayed
	TieWeight  *string      `json:"tie_weight"`
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

// ExplainedMatch counts blocks of the prompt on the pod, by fastest tier.
type ExplainedMatch struct {
	GPU      int  `json:"gpu"`
	Host     int  `json:"host"`
	Disk     int  `json:"disk"`
	Remote   int  `json:"remote"`
	Expected int  `json:"expected"` // in flight, not announced yet
	Depth    int  `json:"depth"`    // all of these
	Size     *int `json:"block_size"`
	Tokens   int  `json:"cached_tokens"` // what the engine will not compute again
	Rank     *int `json:"rank"`
}

// ExplainedTerm is one contribution.
type ExplainedTerm struct {
	Name    string         `json:"name"`
	Seconds float64        `json:"seconds"`
	Inputs  map[string]any `json:"inputs"`
}

// ExplainedAge is how old a row's inputs were at the decision; null = never.
type ExplainedAge struct {
	Metrics *float64 `json:"metrics"`
	Events  *float64 `json:"events"`
}

// ExplainedPick is the outcome.
type ExplainedPick struct {
	Outcome  string       `json:"outcome"`
	Why      *string      `json:"why"`
	Pod      *string      `json:"pod"`
	Addr     *string      `json:"addr"`
	Rank     *int         `json:"rank"` // data-parallel rank that holds the prefix
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
