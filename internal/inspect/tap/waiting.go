package tap

import (
	"fmt"
	"time"

	"github.com/eppctl/eppctl/internal/core/recording"
	"github.com/eppctl/eppctl/internal/inspect/out"
)

// patience is how long a connected stream may be silent until a person is told
// that it is the engine who says nothing: longer than one long prefill.
const patience = 10 * time.Second

// waiting knows the streams that are connected and have sent nothing yet.
type waiting struct {
	since map[*recording.Pod]int64 // ns: connected
	order []*recording.Pod
}

// take hears of every record.
func (w *waiting) take(r *recording.Record) {
	if w.since == nil {
		w.since = map[*recording.Pod]int64{}
	}
	switch {
	case r.Pod == nil:
	case r.Type == recording.TypeNotice && r.Notice.Kind == recording.Up:
		if _, known := w.since[r.Pod]; !known {
			w.order = append(w.order, r.Pod)
		}
		w.since[r.Pod] = r.At
	case r.Type == recording.TypeFrame, r.Type == recording.TypeNotice && r.Notice.Kind == recording.Down:
		w.since[r.Pod] = 0
	}
}

// silent returns the streams that have been so for too long, each once. begun is when
// tap began to listen: serve may have been connected, and have heard events, long
// before.
func (w *waiting) silent(now, begun int64) (lines []string) {
	for _, p := range w.order {
		at := w.since[p]
		if at <= 0 {
			continue
		}
		if at = max(at, begun); now-at >= int64(patience) {
			w.since[p] = 0
			lines = append(lines, fmt.Sprintf("tap: %s: connected, and no event in %ds; an idle engine publishes nothing", out.Clean(podName(p)), (now-at)/1e9))
		}
	}
	return lines
}
