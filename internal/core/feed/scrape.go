package feed

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"mime"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/recording"
	"github.com/eppctl/eppctl/internal/core/telemetry"
)

const (
	// DefaultScrapeInterval is how often a pod's metrics page is read.
	DefaultScrapeInterval = 250 * time.Millisecond
	// DefaultScrapeBytes caps a page after decoding. vLLM 0.32.0 pages measure
	// 60 to 100 KB; 50 ms polling of pages of 1 MB has exhausted another
	// router's memory.
	DefaultScrapeBytes = 4 << 20

	// DefaultCarry is how long a metric that a page no longer has keeps its
	// value: as long as a pod's values count at all.
	DefaultCarry = 5 * time.Second

	// scrapeBackoffMax bounds how long a pod that has come back (from a pause of
	// its process, say) is still taken for failing: its next scrape is what tells.
	// A pod that is away costs one short attempt in that time.
	scrapeBackoffMax = 2 * time.Second
	scrapeJitter     = 0.2
	// scrapeAccept asks for the classic text format: OpenMetrics pages may carry
	// exemplars, which make a line of ours unreadable.
	scrapeAccept = "text/plain;version=0.0.4"
)

// scrapeTimeout bounds one scrape, so that a pod that hangs is seen as failing
// before its values are old.
func scrapeTimeout(every time.Duration) time.Duration { return min(time.Second, 2*every) }

// scraper keeps one pod's row of the telemetry board. run is its only
// goroutine and the row's only writer; a pod that hangs delays no other.
type scraper struct {
	id       pod.ID
	url      string
	own      bool                   // url is at the address that serves requests
	parse    telemetry.ParseOptions // Engine, Model, Rank; the rest is set per scrape
	board    *telemetry.Board
	client   *http.Client
	every    time.Duration
	timeout  time.Duration // 0 = scrapeTimeout(every)
	maxBytes int64         // 0 = DefaultScrapeBytes
	carry    time.Duration // how long a metric that drops out keeps its value; 0 = DefaultCarry
	now      func() int64  // ns
	counters *ScrapeCounters
	// device tells the health of the pod's accelerators; nil = not watched.
	device func() telemetry.Device
	// sampled is called after each good scrape, on run's goroutine. restart
	// says why the page must be another process's than the one before, "" when
	// nothing speaks for that.
	sampled func(s *telemetry.Sample, restart string)
	// hub hears of every page, and of scrapes without one, under the name as; nil =
	// nobody does.
	hub *recording.Hub
	as  *recording.Pod

	// run's own
	failed int    // scrapes since the last good one
	asked  int64  // ns, when the latest page was
	raw    []byte // that page, where somebody looks on
}

// ScrapeCounters count over all scrapers that share them.
type ScrapeCounters struct {
	Good, Failed, Restarts, Clamped atomic.Uint64

	blind blindness
}

// pages are the buffers that pages are read into. A fleet reads few at the same
// time: one buffer per pod would hold the largest page of each for ever.
var pages = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// run scrapes until ctx ends.
func (s *scraper) run(ctx context.Context) {
	s.counters.blind.join()
	var prev *telemetry.Sample
	repeat(ctx, s.every, func() (err error) {
		prev, err = s.once(ctx, prev)
		return err
	})
	s.counters.blind.leave(s.unread())
}

// unread reports that the page counts as unreadable.
func (s *scraper) unread() bool { return s.failed >= blindAfter }

// once scrapes and returns the latest good sample.
func (s *scraper) once(ctx context.Context, prev *telemetry.Sample) (*telemetry.Sample, error) {
	next, err := s.scrape(ctx, prev)
	switch {
	case ctx.Err() != nil: // our own end, not the pod's failure
	case err != nil:
		s.counters.Failed.Add(1)
		s.fail(err, s.mute(err, prev != nil))
		if s.failed++; s.failed == blindAfter {
			s.counters.blind.fail(err)
		}
	default:
		s.tell(http.StatusOK, s.raw, s.asked)
		s.publish(next, prev)
		if prev == nil || s.unread() {
			s.counters.blind.read(s.unread())
		}
		s.failed = 0
		return next, nil
	}
	return prev, err
}

// muteError is that a scrape got no answer at all.
type muteError struct{ error }

func (e muteError) Unwrap() error { return e.error }

// mute reports that a failure says that nothing answers. A page that never came
// from an address that serves no requests says nothing about the pod: the address
// may be wrong.
func (s *scraper) mute(err error, worked bool) bool {
	_, mute := errors.AsType[muteError](err)
	return mute && (worked || s.own)
}

// fail puts a failure on the board.
func (s *scraper) fail(err error, mute bool) {
	now, why := s.now(), printable(said(err), mostSaid)
	if s.raw != nil { // the page says it all
		s.tell(http.StatusOK, s.raw, s.asked)
	} else {
		s.tell(statusOf(err, mute), []byte(why), now)
	}
	if mute {
		s.board.FailMute(s.id, why, now)
		return
	}
	s.board.Fail(s.id, why, now)
}

// statusOf is what a recording says of a scrape without a page.
func statusOf(err error, mute bool) int32 {
	var he *httpError
	switch {
	case mute:
		return recording.PageMute
	case errors.As(err, &he):
		return int32(he.code)
	}
	return recording.PageFailed
}

// tell hands a scrape to the hub.
func (s *scraper) tell(status int32, body []byte, at int64) {
	if s.hub != nil && s.hub.Watched() && body != nil {
		s.hub.Publish(&recording.Record{Type: recording.TypePage, At: at, Pod: s.as, Status: status, Body: body})
	}
}

// publish puts a good sample on the board and reports it.
func (s *scraper) publish(next, prev *telemetry.Sample) {
	restart := follow(next, prev, cmp.Or(s.carry, DefaultCarry))
	if restart != "" {
		s.counters.Restarts.Add(1)
	}
	if s.device != nil {
		next.Device = s.device()
	}
	s.counters.Good.Add(1)
	s.counters.Clamped.Add(uint64(next.Clamped))
	s.board.Put(s.id, next)
	if s.sampled != nil {
		s.sampled(next, restart)
	}
}

// follow completes a sample by the one before it. restart says why that must be
// of another process, whose values are nothing to this one.
func follow(next, prev *telemetry.Sample, carry time.Duration) (restart string) {
	if restart = next.Restarted(prev); restart == "" {
		next.Carry(prev, int64(carry))
	}
	return restart
}

// scrape reads the page once. The sample is dated when the page was asked for:
// requests placed while it was on its way are then counted on top of it, and
// never missed.
func (s *scraper) scrape(ctx context.Context, prev *telemetry.Sample) (*telemetry.Sample, error) {
	timeout := s.timeout
	if timeout <= 0 {
		timeout = scrapeTimeout(s.every)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	o := s.parse
	o.Prev, o.At = prev, s.now()
	s.asked, s.raw = o.At, nil
	buf := pages.Get().(*bytes.Buffer)
	defer pages.Put(buf) // a Sample keeps nothing of the page
	page, err := fetchPage(ctx, s.client, s.url, s.maxBytes, buf)
	if _, unnamed := LookupWords(err); errors.Is(err, context.DeadlineExceeded) && !unnamed {
		late := fmt.Errorf("no complete answer within %v", timeout)
		if _, mute := errors.AsType[muteError](err); mute {
			late = muteError{late}
		}
		return nil, late
	}
	if err != nil {
		return nil, err
	}
	if s.hub != nil && s.hub.Watched() {
		s.raw = bytes.Clone(page)
	}
	return telemetry.Parse(page, o)
}

// fetchPage gets a metrics page into buf. Everything that is not a complete
// page of text is an error: half a page would show half a queue.
func fetchPage(ctx context.Context, client *http.Client, from string, maxBytes int64, buf *bytes.Buffer) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return nil, fmt.Errorf("metrics URL: %w", err)
	}
	req.Header.Set("Accept", scrapeAccept)
	resp, err := send(client, req) // the transport asks for gzip and decodes it
	if err != nil {
		return nil, muteError{bare(err)}
	}
	defer resp.Body.Close()
	if err := checkStatus(resp); err != nil {
		return nil, err
	}
	if maxBytes <= 0 {
		maxBytes = DefaultScrapeBytes
	}
	buf.Reset()
	n, err := buf.ReadFrom(io.LimitReader(resp.Body, maxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("page cut after %d bytes: %w", n, err)
	}
	if n > maxBytes {
		return nil, fmt.Errorf("page larger than %d bytes", maxBytes)
	}
	return buf.Bytes(), refuse(resp.Header.Get("Content-Type"), buf.Bytes())
}

// refuse names what an answer with status 200 is, if it is no page of text. The
// version parameter is of no interest: vLLM 0.32.0 labels the classic format
// 1.0.0 (measured).
func refuse(contentType string, body []byte) error {
	kind, _, _ := mime.ParseMediaType(contentType)
	text := bytes.TrimSpace(body)
	switch {
	case len(text) == 0: // the parser would find nothing wrong with it
		return errors.New("empty page")
	case kind == "application/json", (text[0] == '[' || text[0] == '{') && json.Valid(text):
		return errors.New("JSON instead of metrics text (trtllm-serve: use /prometheus/metrics)")
	case kind == "text/html", text[0] == '<':
		return errors.New("HTML instead of metrics text")
	case bytes.IndexByte(text, 0) >= 0: // an encoding nobody asked for, say; lines in it may look well
		return errors.New("binary data instead of metrics text")
	}
	return nil
}

// repeat calls do until ctx ends. The start is spread over one interval and each
// interval by ±20 %, lest a fleet is scraped in lockstep; failures double the
// interval up to 2 s, the first success resets it.
func repeat(ctx context.Context, every time.Duration, do func() error) {
	pace := every
	wait := time.Duration(rand.Float64() * float64(every))
	for sleep(ctx, wait) == nil {
		if do() != nil {
			pace = slower(pace, every)
		} else {
			pace = every
		}
		wait = time.Duration(float64(pace) * (1 - scrapeJitter + 2*scrapeJitter*rand.Float64()))
	}
}

// slower is the pace after a failure.
func slower(pace, every time.Duration) time.Duration {
	return min(2*pace, max(scrapeBackoffMax, every))
}
