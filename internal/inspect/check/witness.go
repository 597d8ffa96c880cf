package check

import (
	"fmt"
	"time"

	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/telemetry"
	"github.com/eppctl/eppctl/internal/inspect/out"
)

// witness is what was seen of a stream's engine beside the stream.
type witness struct {
	// Computed counts the prompt tokens that the engine looked for in its cache
	// and did not find, meanwhile; -1 = it does not tell, or nobody asked.
	Computed int64
	// Running requests, before or after.
	Running int
	// BlockSize is that of the engine's own metrics page; 0 = not told.
	BlockSize int
	// CacheOff: the engine says that it has no prefix cache.
	CacheOff bool
	// Fleet is all pods of the configuration.
	Fleet []pod.Spec
	// Past: the stream is a recording's.
	Past bool
	// Lasted is how long it was listened to, from From on, in ns.
	Lasted time.Duration
	From   int64
	Before *Before // what serve has had of it; nil = nobody was asked

	portFaulty bool // a probe says why nothing comes
	portWell   bool // a probe has reached it, in the end
}

// idle says what no event means, where nothing is known of requests.
func (w *witness) idle() string {
	lasted := seconds(w.Lasted)
	switch b := w.Before; {
	case w.Past:
		return "no event of it is in the recording"
	case b == nil:
		return fmt.Sprintf("no event came in %s, and no request is known to have run: send one", lasted)
	case !b.Any:
		return fmt.Sprintf("no event came in %s, and serve has had none before (%s): send a request", lasted, b.words())
	default:
		return fmt.Sprintf("none came in %s; serve has batches up to number %d, the last %s ago (%s): it is idle, or send a request", lasted, b.Last, seconds(b.Age), b.words())
	}
}

// words is the state of the stream as serve has it.
func (b *Before) words() string {
	if b.Why == "" {
		return out.Clean(b.State)
	}
	return out.Clean(b.State + ", " + b.Why)
}

// Before is what serve knows of a stream that is heard.
type Before struct {
	Pod   string
	Rank  int
	Any   bool          // it has had events
	Last  uint64        // number of the last batch
	Age   time.Duration // of that, when the listening began
	State string        // sync state
	Why   string        // it is not live, in a reason word
}

// engine takes over what two metrics pages say of the time between them.
func (w *witness) engine(before, after *telemetry.Sample) {
	if before == nil {
		return
	}
	w.CacheOff = before.CacheOff
	if before.KVBlockSize.Known {
		w.BlockSize = before.KVBlockSize.Count()
	}
	if after == nil {
		return
	}
	w.Running = int(max(before.Running.V, after.Running.V)) // 0 where it is not known
	if before.CacheQueried.Known && after.CacheQueried.Known && before.CacheHit.Known && after.CacheHit.Known {
		asked, hit := after.CacheQueried.V-before.CacheQueried.V, after.CacheHit.V-before.CacheHit.V
		w.Computed = max(int64(asked-hit), 0)
	}
}
