// Package reason holds the one set of code words that say why a prompt matched
// nothing on a pod, or could not be matched at all. Metadata, metrics and explain
// all use these words. It imports nothing.
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
	Shape          Code = "request-shape-unsupported"
	PrivateCache   Code = "private-cache"  // SGLang extra_key: invisible in events
	CacheBypassed  Code = "cache-bypassed" // an option makes the engine ignore its cache
	NameTooLong    Code = "name-too-long"  // a model or adapter name that nobody serves
	Deadline       Code = "pick-deadline"
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
	Cleared         Code = "cleared"
	NotCached       Code = "not-cached"
	NoEventsSource  Code = "no-event-source"
	BlockSizeDiffer Code = "block-size-mismatch"
)

// Why a pick is not an ordinary one, or is none.
const (
	AllBreakersOpen Code = "all-breakers-open"  // the best among overloaded pods
	AllAsleep       Code = "all-asleep"         // the best among sleeping engines
	AllFatal        Code = "all-hardware-fatal" // the best among pods with failed devices
	AllFailing      Code = "all-failing"        // the best among pods that answer with server errors
	AllSilent       Code = "all-not-answering"  // the best among pods that answer no scrape
	AllTooShort     Code = "all-contexts-too-short"
	NoPods          Code = "no-pods"         // the fleet is empty
	NoEligiblePod   Code = "no-eligible-pod" // every pod is filtered out
	Shed            Code = "shed"            // sheddable, and only load excludes every pod
)

// CacheOff: the engine runs without a prefix cache, so depth 0 is the truth.
const CacheOff Code = "prefix-cache-off"

// Compressed: the body has a content-encoding and is not read.
const Compressed Code = "body-compressed"
