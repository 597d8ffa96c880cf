// Package reason says why: it holds the one set of code words for why a prompt
// matched nothing on a pod, or could not be matched at all, which metadata, metrics
// and explain all use, and the form in which people are told of a failure. It
// imports nothing.
package reason

// Code is one such word. They are stable: dashboards and scripts match on them.
type Code string

// Why nothing could be matched anywhere.
const (
	None           Code = ""
	UnknownPath    Code = "unknown-path"
	NoBody         Code = "no-body"
	BodyNotJSON    Code = "body-not-json"
	BodyCut        Code = "body-cut"
	NoTokenizer    Code = "tokenizer-missing"
	TokenizeFailed Code = "tokenize-failed"
	TokenizeSlow   Code = "tokenize-deadline"
	TemplateUnused Code = "template-not-used"      // the engine renders this model's chats in code of its own
	Unrenderable   Code = "request-not-renderable" // the native encoder does not know how
	PromptTooLong  Code = "prompt-too-long"        // for the native encoder
	Rejected       Code = "request-rejected"       // the engine answers 400, or is sure to
	Loading        Code = "tokenizer-loading"
	Unloadable     Code = "tokenizer-unloadable"
	Refuted        Code = "tokenizer-refuted" // its ids are not the engine's: the others are asked first
	Shape          Code = "request-shape-unsupported"
	StoredHistory  Code = "history-in-engine" // previous_response_id: one engine remembers the conversation
	PrivateCache   Code = "private-cache"     // SGLang extra_key: invisible in events
	CacheBypassed  Code = "cache-bypassed"    // an option makes the engine ignore its cache
	NameTooLong    Code = "name-too-long"     // a model or adapter name that nobody serves
	Deadline       Code = "pick-deadline"
)

// Why token ids made here are not called exact.
const (
	ParityPending Code = "parity-pending"        // not compared with an engine yet
	ParityProbe   Code = "parity-probe-differs"  // an engine makes other ids of a probe
	ParityEvents  Code = "parity-events-differ"  // engines announce other ids than were routed by
	ParityNobody  Code = "parity-nobody-to-ask"  // no engine of the model offers a way to compare
	ParityFailing Code = "parity-engine-failing" // the engine asked does not answer
)

// Why one pod's depth is 0 though the prompt is known.
const (
	NoEventsEver    Code = "no-events-ever"
	Silent          Code = "connected-silent"
	Disconnected    Code = "disconnected"
	PromptShort     Code = "prompt-shorter-than-block"
	CutAtImage      Code = "cut-at-image"
	Namespace       Code = "namespace-differs"
	Asleep          Code = "asleep"
	Cleared         Code = "cleared" // it was there until the engine's cache was cleared, or the engine restarted
	NotCached       Code = "not-cached"
	NoEventsSource  Code = "no-event-source"
	BlockSizeDiffer Code = "block-size-mismatch"
	RankBusy        Code = "rank-busy" // the rank that has it costs more than it saves: another one of the pod is asked for
)

// Why a pick is not an ordinary one, or is none.
const (
	AllStarting     Code = "all-starting"       // the best among pods that have answered nothing yet
	AllBreakersOpen Code = "all-breakers-open"  // the best among overloaded pods
	AllAsleep       Code = "all-asleep"         // the best among sleeping engines
	AllFatal        Code = "all-hardware-fatal" // the best among pods with failed devices
	AllFailing      Code = "all-failing"        // the best among pods that answer with server errors, or not
	AllSilent       Code = "all-not-answering"  // the best among pods that answer no scrape
	AllTooShort     Code = "all-contexts-too-short"
	NoPods          Code = "no-pods"         // the fleet is empty
	NoEligiblePod   Code = "no-eligible-pod" // every pod is filtered out
	Shed            Code = "shed"            // sheddable, and only load excludes every pod
)

// Why a term of a score is 0.
const (
	NotCrowded      Code = "not-crowded"          // the pods that hold it have no more in flight
	Idle            Code = "idle"                 // there is nothing there to charge
	WeightZero      Code = "weight-zero"          // the configuration leaves the term out
	Overdue         Code = "answers-due"          // requests wait, and by our estimates they have been answered
	NotTrusted      Code = "events-not-trusted"   // blocks match, and stale_trust is 0
	PoolUnknown     Code = "pool-size-unknown"    // no page and no configuration tells how large the KV pool is
	NoResidence     Code = "nothing-answered-yet" // how long a request stays in the pool is not known: none was placed
	AdapterNone     Code = "no-adapter-wanted"    // the request is for the base model
	AdapterResident Code = "adapter-resident"     // the adapter is loaded
	HardwareUnknown Code = "hardware-unknown"     // no exporter tells, and nothing was measured
	HardwareNormal  Code = "hardware-normal"      // nothing slows the pod down
	OnGPU           Code = "on-gpu"               // what matches needs no fetching
	BelowLimit      Code = "below-limit"          // of power and heat
)

// RankByEngine: the engine chooses the data-parallel rank itself, so that what one
// rank has counts by the chance that the request gets there.
const RankByEngine Code = "rank-by-engine"

// CacheOff: the engine runs without a prefix cache, so depth 0 is the truth.
const CacheOff Code = "prefix-cache-off"

// Compressed: the body has a content-encoding and is not read.
const Compressed Code = "body-compressed"

// Why the events of a pod leave the picker blind, or mislead it: what `check` and
// `tap --check` look for.
const (
	WrongPort      Code = "wrong-port"         // something else than the socket wanted listens there
	ReplayDead     Code = "replay-dead"        // no replay to be had from the replay port
	ReplayMismatch Code = "replay-mismatch"    // the replay port tells of other batches than the event port
	WrongFraming   Code = "wrong-framing"      // messages that are not topic, sequence, payload
	Undecodable    Code = "events-undecodable" // payloads that are no batch of events
	EventsSkipped  Code = "events-skipped"     // single events that cannot be read
	EventsLost     Code = "events-lost"        // sequence numbers are missing
	EventsLate     Code = "events-late"        // some come seconds later than others
	HashForm       Code = "hash-form"          // block hashes that are no hashes, or in two forms
	NoTokenIDs     Code = "no-token-ids"       // stores without the tokens of their blocks
	Misaligned     Code = "tokens-misaligned"  // stores whose tokens do not fill their blocks
	HybridGroups   Code = "hybrid-groups"      // several groups of layers, each with blocks of its own
	AdapterUnnamed Code = "adapter-unnamed"    // blocks of an adapter that has a number only
	OrphanParent   Code = "orphan-parent"      // blocks that hang on blocks which were never stored
	TopicDiffers   Code = "topic-mismatch"     // the topic names another pod
	RankDiffers    Code = "rank-mismatch"      // batches of another data-parallel rank
	MediumUnknown  Code = "medium-unknown"     // a storage medium of an unknown kind
	NotHeard       Code = "not-heard"          // no stream of a pod, or no message at all, in what was listened to
)
