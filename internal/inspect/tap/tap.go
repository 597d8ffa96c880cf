package tap

import (
	"context"
	"errors"
	"fmt"
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
