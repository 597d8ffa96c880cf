package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/eppctl/eppctl/internal/core/feed"
	"github.com/eppctl/eppctl/internal/core/index"
	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/recording"
	"github.com/eppctl/eppctl/internal/recorder"
)

// decisions records what was picked and what became of it, for eppctl replay. A nil
// one records nothing. Picks hand over and go on: what the one goroutine that hashes
// and writes does not keep up with is dropped, and counted here and in the file.
type decisions struct {
	queue    chan jotted
	waiting  atomic.Int64  // bytes of token ids in the queue
	dropped  atomic.Uint64 // since the file was last told
	serial   atomic.Uint64
	met      *metrics
	log      *slog.Logger
	index    *index.Index
	run      string
	interval time.Duration // between scrapes

	stop  chan struct{}
	ended chan struct{}

	// Of the goroutine.
	target  recorder.Target
	header  recording.Header
	to      *recorder.Recorder
	secret  *secret
	fleet   *recording.Fleet // as the file has it; nil = it has none
	policy  *pick.Policy     // whose weights that fleet has
	account decisionsAccount
	kept    decisionsAccount // of it, what the file has for sure
	pause   decisionsPause
}

// decisionsAccount ends a recording of decisions.
type decisionsAccount struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Decisions  uint64 `json:"decisions"`
	Outcomes   uint64 `json:"outcomes"`
	Dropped    uint64 `json:"dropped"`
}

func (a *decisionsAccount) records() uint64 { return a.Decisions + a.Outcomes }

// recordDecisions begins a recording; nil when none is asked for.
func recordDecisions(c *Config, p *Picker, program string) (*decisions, error) {
	if c.Decisions.File == "" {
		return nil, nil
	}
	host, _ := os.Hostname() // "" will do
	h := recording.Header{Program: "eppctl " + program, Host: host, Source: "serve"}
	t := recorder.Target{Path: c.Decisions.File, RotateSize: int64(c.Decisions.RotateSize), Keep: c.Decisions.Keep}
	to, err := recorder.Begin(t, h, nil, time.Now())
	if err != nil {
		return nil, &recordError{Path: t.Path, Err: err}
	}
	d := &decisions{
		queue: make(chan jotted, maxJotted), met: p.met, log: p.log, index: p.fleet.Index, run: p.run, interval: c.Scrape.Interval,
		stop: make(chan struct{}), ended: make(chan struct{}), target: t, header: h, to: to, secret: newSecret(),
		pause:   decisionsPause{first: firstRetry},
		account: decisionsAccount{APIVersion: APIVersion, Kind: "DecisionsAccount"},
	}
	if was := to.Aside(); was != "" {
		d.log.Info("decisions: a recording was there already", "file", t.Path, "is_now", was)
	}
	d.log.Info("decisions: recording", "file", t.Path, "rotate_size", c.Decisions.RotateSize.String(), "keep", c.Decisions.Keep)
	go d.write()
	return d, nil
}

// recordError is a recording of decisions that cannot be begun.
type recordError struct {
	Path string
	Err  error
}

func (e *recordError) Error() string {
	err := e.Err
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err // the path stands before it
	}
	return fmt.Sprintf("decisions.file: cannot record to %s: %v; create its folder, or leave the key and --record-decisions out", e.Path, err)
}

func (e *recordError) Unwrap() error { return e.Err }

// close writes what waits and ends the recording.
func (d *decisions) close() {
	if d == nil {
		return
	}
	close(d.stop)
	<-d.ended
}

// write is the goroutine. It ends with close.
func (d *decisions) write() {
	defer close(d.ended)
	tick := time.NewTicker(recorder.FlushEvery)
	defer tick.Stop()
	for {
		select {
		case j := <-d.queue:
			d.take(j)
		case <-tick.C:
			if d.pause.broken {
				d.resume(time.Now())
			} else {
				d.failed(d.flush())
			}
		case <-d.stop:
			for {
				select {
				case j := <-d.queue:
					d.take(j)
				default:
					d.end()
					return
				}
			}
		}
	}
}

func (d *decisions) take(j jotted) {
	d.waiting.Add(-j.bytes())
	if d.pause.broken || d.failed(d.note(j)) {
		d.drop()
		return
	}
	if d.to.Due(time.Now()) {
		d.failed(d.rotate(j.at))
	}
}

// note writes one record, and before it what the file has to have.
func (d *decisions) note(j jotted) error {
	if err := d.lost(j.at); err != nil {
		return err
	}
	if j.outcome == nil {
		return d.decision(j.at, j.decided)
	}
	if err := d.record(recording.TypeOutcome, j.at, j.outcome); err != nil {
		return err
	}
	d.account.Outcomes++
	return nil
}

// flush hands on what is buffered. Only that counts as recorded.
func (d *decisions) flush() error {
	if err := d.to.Flush(); err != nil {
		return err
	}
	d.met.recorded.Add(d.account.records() - d.kept.records())
	d.kept = d.account
	return nil
}

// rotate begins another file, which can be read alone.
func (d *decisions) rotate(at int64) error {
	if err := d.flush(); err != nil {
		return err
	}
	if err := d.to.Rotate(d.text(), time.Now()); err != nil {
		return err
	}
	return d.stand(at)
}

// stand tells a new file of the fleet as it was last.
func (d *decisions) stand(at int64) error {
	if d.fleet == nil {
		return nil
	}
	return d.record(recording.TypeFleet, at, d.fleet)
}

// lost notes in the file how many records are missing here.
func (d *decisions) lost(at int64) error {
	n := d.dropped.Swap(0)
	if n == 0 {
		return nil
	}
	d.account.Dropped += n
	return d.to.Write(&recording.Record{Type: recording.TypeNotice, At: at, Notice: recording.Notice{
		Kind: recording.Dropped, Count: n, Why: "the recording did not keep up, or could not be written",
	}})
}

func (d *decisions) decision(at int64, n *noted) error {
	if err := d.over(at, n); err != nil {
		return err
	}
	n.Blocks, n.Request = d.secret.chain(&n.prompt), d.secret.request(n.requestID)
	if !n.offered() {
		n.Adapter = "~" + d.secret.request(n.Adapter)
	}
	if err := d.record(recording.TypeDecision, at, &n.Decision); err != nil {
		return err
	}
	d.account.Decisions++
	return nil
}

// offered reports that the adapter is one of the fleet's, and no word of the client's.
func (n *noted) offered() bool {
	return n.Adapter == "" || slices.ContainsFunc(n.pods, func(p *pod.Pod) bool { return slices.Contains(p.Spec.Adapters, n.Adapter) })
}

// over tells the file of the fleet that a decision is of, where it is another than
// before. Block sizes and pools become known later than pods.
func (d *decisions) over(at int64, n *noted) error {
	pods := make([]recording.FleetPod, len(n.pods))
	for i, p := range n.pods {
		pods[i] = recording.FleetPod{Name: p.Spec.Name, PoolTokens: n.pools[i]}
		if len(p.Members) > 0 {
			pods[i].BlockSize = d.index.BlockSize(p.Members[0])
		}
	}
	if len(pods) == 0 || d.fleet != nil && d.policy == n.policy && slices.Equal(d.fleet.Pods, pods) {
		return nil
	}
	f := &recording.Fleet{
		Run: d.run, Pods: pods, Terms: pick.TermNames(), Weights: map[string]float64{},
		BlockTokens: hashedTokens, ScrapeMs: d.interval.Milliseconds(),
	}
	for _, key := range pick.WeightKeys() {
		f.Weights[key], _ = n.policy.Weight(key)
	}
	d.fleet, d.policy = f, n.policy
	return d.record(recording.TypeFleet, at, f)
}

func (d *decisions) record(t recording.Type, at int64, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("record of type %d: %w", t, err)
	}
	return d.to.Write(&recording.Record{Type: t, At: at, Body: body})
}

func (d *decisions) end() {
	if d.pause.broken {
		return
	}
	if d.failed(d.lost(wall(feed.Now()).UnixNano())) || d.failed(d.flush()) {
		return
	}
	d.failed(d.to.End(d.text()))
}

func (d *decisions) text() []byte {
	b, _ := json.Marshal(d.account) // of a string and numbers
	return b
}
