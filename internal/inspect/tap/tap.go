package tap

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/eppctl/eppctl/internal/core/recording"
	"github.com/eppctl/eppctl/internal/inspect"
	"github.com/eppctl/eppctl/internal/inspect/out"
)

// Formats are the values of -o.
func Formats() []string { return []string{"table", "wide", "jsonl", "json", "yaml"} }

// Command is one run of tap.
type Command struct {
	Source     Source
	Filter     Filter
	Sample     uint64 // one block of so many
	Rate       int    // events shown per second
	Format     string
	Raw        bool // parts of messages as hex
	Stats      bool // tallies in place of events
	Quiet      bool // no events
	NoHeaders  bool
	ShowTokens bool // token ids in JSON
	EngineTime bool // TIME is the engine's
	Count      uint64
	Duration   time.Duration
	End        bool // with the replays of all streams
	Write      Write
	Program    string // for the header of a recording
	Host       string
	Wanted     int      // pods there should be; 0 = as many as show up
	Pods       []string // patterns that pods of a recording must fit
	// Demand makes an error of engines that were never reached, and of a replay
	// that failed.
	Demand    bool
	Consumers []Consumer
	Expect    []Expectation   // of the account at the end
	Report    <-chan struct{} // print the account and go on
	Flush     <-chan struct{} // flush the recording
}

// errEnough ends a run that has shown what it was to show.
var errEnough = errors.New("enough")

// run is a running Command. One goroutine uses it.
type run struct {
	*Command
	s        *out.Streams
	ctx      context.Context
	decoder  decoder
	thin     thin
	account  *Account
	stats    *Stats
	out      *output
	print    printer
	recorder *writer
	parts    map[*recording.Pod]int // of the last replayed message
	replays  replays
	begun    time.Time
	recorded span // of a recording that is read: its time, in ns
	taken    bool // any record
	waiting  waiting
}

// Run taps until ctx ends, the source does, or enough has been shown; all of that
// is success, and so is a reader of stdout that has gone. The account goes to
// stderr in any case.
func (c *Command) Run(ctx context.Context, s *out.Streams) error {
	user := ctx // ended by a signal
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if c.Duration > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, c.Duration)
		defer stop()
	}
	r, err := c.begin(ctx, s)
	if err != nil {
		return err
	}
	records, ended := make(chan []*recording.Record), make(chan error, 1)
	go func() {
		ended <- c.Source.Run(ctx, func(rs []*recording.Record) error {
			select {
			case records <- rs:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	err = r.loop(records, ended)
	cancel()
	if err == nil || errors.Is(err, errEnough) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		err = nil
	}
	for sourceEnded := false; !sourceEnded; {
		select {
		case <-records:
		case e, ok := <-ended:
			sourceEnded = true
			if ok && err == nil && !errors.Is(e, context.Canceled) && !errors.Is(e, context.DeadlineExceeded) {
				err = e
			}
		}
	}
	last := r.end(err)
	return errors.Join(err, last, r.unanswered(err, user.Err() != nil), r.account.unmet(c.Expect))
}

func (c *Command) begin(ctx context.Context, s *out.Streams) (*run, error) {
	now := time.Now()
	r := &run{
		Command: c, s: s, ctx: ctx, account: newAccount(), begun: now, parts: map[*recording.Pod]int{},
		thin: thin{sample: c.Sample, rate: c.Rate},
	}
	if c.Write.Path == "-" {
		c.Quiet = true // stdout is the recording
	}
	if c.Write.Path != "" {
		h := recording.Header{Program: c.Program, Host: c.Host, Source: c.Source.String()}
		if c.Write.Filtered {
			h.Filters = []string{"messages without an event that the filter shows"}
		}
		var err error
		if r.recorder, err = newWriter(c.Write, h, s.Out, now); err != nil {
			return nil, err
		}
		if was := r.recorder.Aside(); was != "" {
			fmt.Fprintf(s.Err, "tap: %s was there already, and is %s now\n", out.Clean(c.Write.Path), out.Clean(was))
		}
	}
	if c.Stats {
		r.stats = newStats()
	}
	r.out = newOutput(s.Out)
	switch c.Format {
	case "table", "wide", "":
		r.print = &lines{w: r.out, s: s, wide: c.Format == "wide", header: !c.NoHeaders, engineTime: c.EngineTime, raw: c.Raw}
	default:
		r.print = &objects{w: r.out, form: c.Format, raw: c.Raw, tokens: c.ShowTokens}
	}
	return r, nil
}

// loop takes records until something ends it.
func (r *run) loop(records <-chan []*recording.Record, ended chan error) error {
	tick := time.NewTicker(outputEvery)
	defer tick.Stop()
	for {
		select {
		case <-r.ctx.Done():
			return nil
		case err := <-ended:
			close(ended) // the answer to whoever waits for it again
			return err
		case rs := <-records:
			for _, rec := range rs {
				if err := r.take(rec); err != nil {
					return err
				}
			}
			if r.s.OutTTY {
				if err := r.out.hand(r.ctx); err != nil {
					return err
				}
			}
			if r.recorder != nil && r.recorder.Awaited() {
				if err := r.recorder.flush(); err != nil {
					return err
				}
			}
		case now := <-tick.C:
			if err := r.out.hand(r.ctx); err != nil {
				return err
			}
			if err := r.rotate(); err != nil {
				return err
			}
			if _, past := r.Source.(*File); !past && r.s.ErrTTY && r.visible() {
				for _, line := range r.waiting.silent(now.UnixNano(), r.begun.UnixNano()) {
					fmt.Fprintln(r.s.Err, line)
				}
			}
			if r.recorder != nil {
				if err := r.recorder.handOn(now); err != nil {
					return err
				}
			}
		case <-r.Report:
			r.report()
		case <-r.Flush:
			if r.recorder != nil {
				if err := r.recorder.flush(); err != nil {
					return err
				}
			}
		}
	}
}

// take does everything with one record.
func (r *run) take(rec *recording.Record) error {
	if rec.Type == recording.TypeAccount {
		return nil // of the recording that is read; ours comes at the end
	}
	if at := uint64(rec.At); rec.At > 0 {
		if r.recorded.from == 0 {
			r.recorded = span{at, at}
		}
		r.recorded = span{min(r.recorded.from, at), max(r.recorded.to, at)}
	}
	r.taken = true
	r.waiting.take(rec)
	e := r.decoder.decode(rec)
	for _, c := range r.Consumers {
		c.Take(e)
	}
	if r.stats != nil && r.Filter.Admits(e) {
		r.stats.Take(e)
	}
	r.account.take(e)
	if rec.Type == recording.TypeReplay {
		r.parts[rec.Pod] = len(rec.Parts)
	}
	r.Filter.see(e)
	shown, err := r.show(e)
	if err == nil && r.End && r.replays.over(rec, r.Wanted) {
		err = errEnough
	}
	if r.recorder != nil && (shown || !r.Write.Filtered || !isMessage(rec)) {
		if err := r.recorder.write(rec); err != nil {
			return err
		}
		if err := r.rotate(); err != nil {
			return err
		}
	}
	if err == nil && r.out.full() {
		err = r.out.hand(r.ctx)
	}
	return err
}

// isMessage reports that a record is of the events themselves.
func isMessage(r *recording.Record) bool {
	return r.Type == recording.TypeFrame || r.Type == recording.TypeReplay
}

// show prints what is to be seen of an entry, and reports whether anything is.
func (r *run) show(e *Entry) (shown bool, err error) {
	switch e.Type {
	case recording.TypeNotice:
		n := noticeOf(e, r.parts[e.Pod])
		r.tell(n)
		if r.visible() {
			r.print.notice(n)
		}
		return true, nil
	case recording.TypeFrame, recording.TypeReplay:
	default:
		return false, nil
	}
	bad := badFrames(e)
	told := 0
	tell := func(before int) {
		for ; told < len(bad) && bad[told].before <= before; told++ {
			if r.visible() {
				r.print.notice(bad[told])
			}
		}
	}
	if e.Batch != nil {
		for i := range e.Batch.Events {
			tell(i)
			ev := &e.Batch.Events[i]
			if !r.Filter.shows(e, ev) {
				continue
			}
			shown = true
			r.account.Matched++
			if r.visible() && !r.thin.hides(ev, e.At) {
				r.print.event(e, ev)
			}
			if r.account.Matched == r.Count {
				err = errEnough
				break
			}
		}
	}
	tell(math.MaxInt)
	if shown = shown || len(bad) > 0; shown && r.visible() {
		r.print.message(e)
	}
	return shown, err
}

// visible reports that events are shown at all.
func (r *run) visible() bool { return !r.Quiet && r.stats == nil }

// tell writes a change of a connection to stderr where no row shows it.
func (r *run) tell(n *Notice) {
	if _, past := r.Source.(*File); past {
		return
	}
	if (n.Notice == recording.Up || n.Notice == recording.Down) && !r.visible() {
		fmt.Fprintf(r.s.Err, "tap: %s: %s: %s\n", out.Clean(n.name()), n.Notice, out.Clean(n.text()))
	}
}

func (r *run) rotate() error {
	if r.recorder == nil || !r.recorder.Due(time.Now()) {
		return nil
	}
	r.complete()
	return r.recorder.rotate(r.account, time.Now())
}

// took is how long the stream lasted: by its own clock when it is a recording.
func (r *run) took() time.Duration {
	if f, past := r.Source.(*File); past {
		from := max(r.recorded.from, uint64(f.from.Load())) // connections older than --from are shown too
		return time.Duration(max(r.recorded.to, from) - from)
	}
	return time.Since(r.begun)
}

// complete brings the account up to date.
func (r *run) complete() {
	if f, ok := r.Source.(*File); ok {
		r.account.UnknownRecords = f.Unknown()
	}
	r.account.close(r.took(), &r.thin, r.Wanted)
	if r.recorder != nil {
		r.account.Written = r.recorder.written()
	}
}

// report prints the account as it is now.
func (r *run) report() {
	r.complete()
	if r.Format == "jsonl" || r.Format == "json" {
		if b, err := json.Marshal(r.account); err == nil {
			fmt.Fprintf(r.s.Err, "%s\n", b)
		}
		return
	}
	r.account.write(r.s.Err)
}

// end writes what comes last: tallies, the rest of the output, the account, and
// the end of the recording. The cause is an error that ended the run.
func (r *run) end(cause error) error {
	var err error
	if r.stats != nil {
		err = r.tallies()
	}
	if r.visible() {
		r.print.close()
	}
	if e := r.out.close(); e != nil && !errors.Is(e, context.DeadlineExceeded) {
		err = errors.Join(err, e)
	}
	r.complete()
	if r.recorder != nil {
		err = errors.Join(err, r.recorder.end(r.account))
		r.account.Written = r.recorder.written()
	}
	if cause == nil || r.taken {
		r.report() // else there is nothing to account for
	}
	return err
}

func (r *run) tallies() error {
	r.stats.close(r.took())
	switch r.Format {
	case "table", "wide", "":
		return r.stats.write(r.out, r.s)
	}
	form := "jsonl" // one object, which is a document of JSON too
	if r.Format == "yaml" {
		form = "yaml"
	}
	(&objects{w: r.out, form: form}).put(r.stats)
	return nil
}

// Bounded reports that the stream ends by itself, so that its events can be the
// elements of one list.
func (c *Command) Bounded() bool {
	_, file := c.Source.(*File)
	return file || c.End || c.Count > 0 || c.Duration > 0 || c.Stats
}

// Check refuses what does not go together.
func (c *Command) Check() error {
	if (c.Format == "json" || c.Format == "yaml") && !c.Bounded() {
		return &inspect.Error{
			Kind: inspect.Usage, Code: "E_USAGE", What: fmt.Sprintf("-o %s: a stream without an end cannot be one document", c.Format),
			Hint: "try: -o jsonl, or give it an end with -c N or --duration",
		}
	}
	if f, past := c.Source.(*File); past && c.Write.Path != "" && c.Write.Path != "-" {
		if target, err := os.Stat(c.Write.Path); err == nil && f.is(target) {
			return &inspect.Error{
				Kind: inspect.Usage, Code: "E_USAGE", What: fmt.Sprintf("--write: found %q, which --read reads", c.Write.Path), Hint: "try: --write another file",
			}
		}
	}
	return nil
}
