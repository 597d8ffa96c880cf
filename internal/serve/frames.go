package serve

import (
	"net/http"
	"slices"
	"time"

	"github.com/eppctl/eppctl/internal/core/recording"
)

// Bounds of GET /v1/frames, beside the other requests': its answers do not end.
const (
	frameClients = 4
	frameRecords = 16 << 10
	frameBytes   = 16 << 20 // per client, the largest message there can be
	// frameEvery is how long a record may wait for others, frameStall how long a
	// client may take nothing before it counts as gone.
	frameEvery = 100 * time.Millisecond
	frameStall = 30 * time.Second
)

const framesPath = "/v1/frames"

// getFrames streams a recording of what the feed receives from now on. A client
// that does not keep up loses messages, and is told; the feed never waits.
//
// It is the one answer of the admin API that holds token ids: those in the events
// of the engines.
func (a *admin) getFrames(w http.ResponseWriter, r *http.Request) {
	patterns := r.URL.Query()["pod"]
	keep := func(p *recording.Pod) bool {
		return len(patterns) == 0 || slices.ContainsFunc(patterns, func(s string) bool { return recording.Glob(s, p.Name) })
	}
	conn := http.NewResponseController(w)
	// The server's own deadlines are for answers that end.
	_ = conn.SetReadDeadline(time.Time{})
	q := a.hub.Subscribe(recording.Limits{Records: frameRecords, Bytes: frameBytes}, keep)
	defer q.Close()
	w.Header().Set("Content-Type", "application/octet-stream")
	out, err := recording.NewWriter(w, recording.Header{
		Program: "eppctl " + a.version.Version, Begun: time.Now().UTC().Format(time.RFC3339Nano), Source: "serve", Filters: patterns,
	})
	if err != nil {
		return
	}
	hand := func() error {
		_ = conn.SetWriteDeadline(time.Now().Add(frameStall))
		if err := out.Flush(); err != nil {
			return err
		}
		return conn.Flush()
	}
	tick := time.NewTicker(frameEvery)
	defer tick.Stop()
	for err := hand(); err == nil; {
		select {
		case <-r.Context().Done():
			return
		case <-q.Ready():
			_ = conn.SetWriteDeadline(time.Now().Add(frameStall)) // the buffer may overflow into the socket
			for _, rec := range q.Take() {
				if err = out.Write(rec); err != nil {
					return
				}
			}
		case <-tick.C:
			err = hand()
		}
	}
}
