package view

// Snapshot is the fleet at one instant on the wire: what /v1/state of the admin
// API answers, and the frame that `eppctl top` draws. It holds numbers, names and
// states, and nothing of a prompt but its length. Fields are only ever added.
// Unknown is null and never 0, no number is NaN or infinite, lists are never null
// unless they were not asked for. Counters only grow while Run and, of a pod,
// Epoch are the same; rates are differences of two snapshots.
type Snapshot struct {
	APIVersion string     `json:"apiVersion"`  // "eppctl/v1"
	Kind       string     `json:"kind"`        // "Snapshot"
	At         string     `json:"at"`          // RFC 3339
	Source     string     `json:"source"`      // "live"; "recording" played back; "engines" followed without a picker
	Run        string     `json:"run"`         // of the process: another one counts from zero
	Epoch      uint64     `json:"epoch"`       // of the pod set
	IntervalMs int64      `json:"interval_ms"` // between scrapes
	Pods       []PodState `json:"pods"`
	Total      int        `json:"total"` // pods that pass the filter
	Truncated  bool       `json:"truncated"`
	Totals     Totals     `json:"totals"`
	Index      IndexState `json:"index"`
	Hits       Hits       `json:"hits"`
	// Tokenizers tell, by model, who is asked for token ids.
	Tokenizers []TokenizerState `json:"tokenizers,omitempty"`
	// Picks are recent decisions, newest first, as many as were asked for.
	Picks []RecentPick `json:"picks,omitempty"`
}

// Totals are sums over the fleet.
type Totals struct {
	Pods        int    `json:"pods"`
	WithEvents  int    `json:"with_events"`
	InFlight    int    `json:"in_flight"`
	Waiting     int    `json:"waiting"` // before their first byte
	OpenStreams int64  `json:"open_streams"`
	LooseEnds   int    `json:"loose_ends"` // ended streams whose request may still run
	Routed      uint64 `json:"routed"`
	Refused     uint64 `json:"refused"`
}

// IndexState sizes the index.
type IndexState struct {
	Blocks     int    `json:"blocks"`
	MaxBlocks  int    `json:"max_blocks"`
	Dead       int    `json:"dead"`
	Runs       int    `json:"runs"`
	Bytes      int64  `json:"bytes"`     // about
	MaxBytes   *int64 `json:"max_bytes"` // null = no cap by size
	BlockSizes []int  `json:"block_sizes"`
	Evicted    uint64 `json:"evicted"`
	Expired    uint64 `json:"expired"`
}

// Hits counts prompt tokens since the start, from what could have been cached to
// what was. The engines' report is of those requests whose responses show one.
type Hits struct {
	Queried       uint64 `json:"queried"`
	BestAvailable uint64 `json:"best_available"` // on the candidate that holds most
	Selected      uint64 `json:"selected"`       // on the pod that was picked
	EngineQueried uint64 `json:"engine_queried"`
	EngineCached  uint64 `json:"engine_cached"`
}

// PodState is one pod.
type PodState struct {
	Name      string    `json:"name"`
	Addr      string    `json:"addr"`
	Epoch     uint64    `json:"epoch"` // in which it joined
	Engine    string    `json:"engine"`
	Role      string    `json:"role"`
	Model     string    `json:"model"`
	Adapters  []string  `json:"adapters"`
	State     string    `json:"state"`            // ok, slow, open, stale, down
	Filter    string    `json:"filter,omitempty"` // that leaves the pod out of every pick for now: "not-answering", "failing"
	Draining  bool      `json:"draining"`
	Ranks     []Rank    `json:"ranks"`
	Telemetry Scraped   `json:"telemetry"`
	Load      PodLoad   `json:"load"`
	Breaker   PodBreak  `json:"breaker"`
	Served    PodServed `json:"served"`
}

// Rank is one data-parallel rank's event stream and cache.
type Rank struct {
	Rank      int     `json:"rank"`
	Sync      string  `json:"sync"`              // see SyncState
	Missing   uint64  `json:"missing,omitempty"` // in a gap: batches to be had
	Why       string  `json:"why,omitempty"`     // reason word of the state
	Detail    string  `json:"detail,omitempty"`  // the same in words: the last error, say
	SinceMs   float64 `json:"since_ms"`          // how long the state has lasted
	EventAge  *int64  `json:"last_event_age_ms"`
	LastSeq   uint64  `json:"last_seq"`
	Lost      uint64  `json:"lost"`
	Connected bool    `json:"connected"`
	BlockSize *int    `json:"block_size"`
	GPU       int     `json:"blocks"` // on the GPU
	Host      int     `json:"host_blocks"`
	Disk      int     `json:"disk_blocks"`
	Remote    int     `json:"remote_blocks"`
	Expected  int     `json:"expected_prompts"`
	// Load is our own account of the rank. A request whose rank the engine chooses
	// counts where it would wait least.
	Load RankLoad `json:"load"`
	// Approximate: the model has cache groups whose rule is not known, and its
	// matches are too long at times.
	Approximate bool `json:"approximate,omitempty"`
	// Events are counters of the stream; null where nobody counts: no stream, or a
	// recording.
	Events *RankEvents `json:"events"`
}

// RankEvents count what came over one event stream.
type RankEvents struct {
	Batches     uint64  `json:"batches"`
	Bytes       uint64  `json:"bytes"`
	Stored      uint64  `json:"stored"` // events applied
	Removed     uint64  `json:"removed"`
	Cleared     uint64  `json:"cleared"`
	Undecodable uint64  `json:"undecodable"` // messages that were no batch, or of another shape
	Skipped     uint64  `json:"skipped"`     // events that could not be read
	Dropped     uint64  `json:"dropped"`     // batches, because the index was behind
	Missed      uint64  `json:"missed"`      // batches that did not come live, replayed ones included
	Purges      uint64  `json:"purges"`      // times all blocks of the rank were dropped
	LagMs       float64 `json:"lag_ms"`      // of the last batch behind the promptest one
}

// Scraped is the last good scrape.
type Scraped struct {
	State   string   `json:"state"` // fresh, stale, unknown
	AgeMs   *int64   `json:"age_ms"`
	Error   string   `json:"error,omitempty"`
	Waiting *float64 `json:"waiting"`
	Running *float64 `json:"running"`
	KVUsage *float64 `json:"kv_usage"`
	// CacheQueried and CacheHit are the engine's own counters of prompt tokens; they
	// begin again with the engine.
	CacheQueried *float64 `json:"cache_queried"`
	CacheHit     *float64 `json:"cache_hit"`
	// Signals are all numbers of the page with where and when they come from.
	Signals []Signal `json:"signals,omitempty"`
	LoRA    *LoRA    `json:"lora,omitempty"`
	Device  *Device  `json:"device,omitempty"` // nil = no exporter tells of it
}

// Signal is one scraped number.
type Signal struct {
	Name     string   `json:"name"`
	Value    *float64 `json:"value"` // null = unknown
	Metric   string   `json:"metric,omitempty"`
	AgeMs    *int64   `json:"age_ms,omitempty"`
	Estimate bool     `json:"estimate,omitempty"`
}

// LoRA is what the page says about adapters that are active now. Active is not
// resident: an idle loaded adapter is absent.
type LoRA struct {
	Max     int      `json:"max"` // adapters that fit at once, 0 = not told
	Running []string `json:"running"`
	Waiting []string `json:"waiting"`
}

// Device is what an exporter says of the pod's accelerators.
type Device struct {
	AgeMs     *int64   `json:"age_ms"`
	Throttled bool     `json:"throttled"`
	Critical  bool     `json:"critical"`
	Fatal     bool     `json:"fatal"`
	Why       string   `json:"why,omitempty"`
	Missing   []string `json:"missing,omitempty"` // signals that are not published: unknown, not healthy
}

// RankLoad is our own accounting of one rank.
type RankLoad struct {
	InFlight int     `json:"in_flight"`
	Waiting  int     `json:"waiting"` // of these, before their first byte
	QueueMs  float64 `json:"queue_ms"`
}

// PodLoad is our own accounting.
type PodLoad struct {
	InFlight   int     `json:"in_flight"`
	Waiting    int     `json:"waiting"`
	QueueMs    float64 `json:"queue_ms"`
	HeldTokens int64   `json:"held_tokens"`
}

// PodBreak is what keeps a pod out of picks for a while: its queue, until that is
// shorter, or its server errors in a row, until a probe succeeds.
type PodBreak struct {
	Open      bool     `json:"open"`
	Why       string   `json:"why,omitempty"` // "queue", "errors", "unanswered"
	State     string   `json:"state"`         // of the circuit: closed, open, half-open
	Waiting   int      `json:"waiting"`       // before their first byte
	Limit     int      `json:"limit"`         // of those
	Errors    int      `json:"errors"`        // of the engine, in a row
	Lost      int      `json:"lost"`          // requests in a row that ended unanswered, since the pod was full
	Probes    int      `json:"probes"`        // under way
	ProbeInMs *float64 `json:"probe_in_ms"`   // until a request is tried, 0 = one is; null = no probe is due
}

// PodServed counts what was sent to a pod since it joined, in requests and in
// prompt tokens.
type PodServed struct {
	Picks         uint64 `json:"picks"`
	Queried       uint64 `json:"queried"` // tokens of the prompts whose ids are known
	Cached        uint64 `json:"cached"`  // of these, counted on when the pod was picked
	EngineQueried uint64 `json:"engine_queried"`
	EngineCached  uint64 `json:"engine_cached"`
	// Depths counts the picks whose token ids are known by how much of the prompt was
	// counted on as cached: nothing, then up to one tenth, up to two, up to all of it.
	Depths [DepthBuckets]uint64 `json:"depths"`
}

// DepthBuckets is the number of counters in PodServed.Depths.
const DepthBuckets = 11

// DepthBucket is the place in PodServed.Depths of a prompt of so many tokens.
func DepthBucket(cached, tokens int) int {
	if cached <= 0 || tokens <= 0 {
		return 0
	}
	const tenths = DepthBuckets - 1
	return min((cached*tenths+tokens-1)/tokens, tenths)
}

// RecentPick is one line of a list of decisions.
type RecentPick struct {
	Seq       uint64   `json:"seq"` // from 1 in each run; refusals of a decision count too
	RequestID string   `json:"request_id"`
	PickID    string   `json:"pick_id"`
	At        string   `json:"at"`
	Model     string   `json:"model"`
	Outcome   string   `json:"outcome"`
	Pod       *string  `json:"pod"`
	Addr      *string  `json:"addr"`
	Tokens    int      `json:"tokens"`
	Cached    int      `json:"cached_tokens"`
	Score     *float64 `json:"score"`  // seconds, of the winner
	Margin    *float64 `json:"margin"` // seconds over the runner-up, null = none
	RunnerUp  *string  `json:"runner_up"`
	Tie       bool     `json:"tie"`
	Reason    *string  `json:"reason"`
	ReadUs    float64  `json:"read_us"` // from the whole body to the decision: most is the token ids
	TookUs    float64  `json:"decide_us"`
}
