// Package picks is eppctl picks: decisions of a running serve, as lines, while they are
// made. serve keeps the latest and never waits for a reader: one that comes too late is
// told how many it missed.
package picks

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/eppctl/eppctl/internal/core/view"
	"github.com/eppctl/eppctl/internal/inspect"
	"github.com/eppctl/eppctl/internal/inspect/out"
)

// Interval is between two questions: as often as top asks at most, and soon enough for
// who watches. A page that was full is followed by the next one at once.
const Interval = 250 * time.Millisecond

// Formats are the values of --output.
func Formats() []string { return []string{"table", "jsonl"} }

// Command is what was asked for.
type Command struct {
	Pod    string // "" = all
	Last   int    // of those made before, at most
	Follow bool
	Format string
}

// Server is what is asked: inspect.Client.
type Server interface {
	PicksAfter(ctx context.Context, pod string, seq uint64) (inspect.PicksAfter, error)
}

// Run prints until ctx ends, which is a good end, or once without Follow.
func (c *Command) Run(ctx context.Context, server Server, s *out.Streams) error {
	f := &follower{Command: c, server: server, streams: s, printer: newPrinter(c.Format, s)}
	if err := f.begin(ctx); err != nil || !c.Follow {
		return err
	}
	err := f.follow(ctx)
	fmt.Fprintf(s.Err, "picks: %s, %d missed\n", out.Plural(f.shown, "decision"), f.missed)
	return err
}

type follower struct {
	*Command
	server  Server
	streams *out.Streams
	printer *printer

	run           string // of the serve that answered last
	last          uint64
	shown, missed int
	away          bool // it did not answer last time
}

// begin prints the last ones of what is kept. It ends with the newest of when it began:
// a busy serve decides more while a page is on its way, for ever.
func (f *follower) begin(ctx context.Context) error {
	var kept []json.RawMessage
	newest := uint64(0)
	for {
		page, err := f.server.PicksAfter(ctx, f.Pod, f.last)
		if err != nil {
			return err
		}
		switch {
		case f.run == "":
			f.run, newest = page.Run, page.Newest
		case page.Run != f.run: // another process: once more
			f.run, f.last, kept = "", 0, nil
			continue
		case page.Missed > 0: // those before are not the last ones any more
			kept = nil
		}
		f.last = page.Last
		kept = append(kept, page.Picks...)
		kept = kept[max(len(kept)-f.Last, 0):]
		if f.last >= newest {
			return f.print(kept)
		}
	}
}

func (f *follower) follow(ctx context.Context) error {
	tick := time.NewTicker(Interval)
	defer tick.Stop()
	for {
		page, err := f.server.PicksAfter(ctx, f.Pod, f.last)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			f.lost(err)
		default:
			if err := f.take(page); err != nil {
				return err
			}
			if len(page.Picks) > 0 {
				continue
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// lost says once that serve is away; it is asked on.
func (f *follower) lost(err error) {
	if !f.away {
		fmt.Fprintf(f.streams.Err, "warn: %s\n", out.Clean(err.Error()))
	}
	f.away = true
}

// take prints a page, and before it what is missing.
func (f *follower) take(page inspect.PicksAfter) error {
	f.away = false
	if page.Run != f.run { // another process: its first ones are behind number 0
		f.run, f.last = page.Run, 0
		return f.printer.notice("restart", 0)
	}
	f.last = page.Last
	if page.Missed > 0 {
		f.missed += page.Missed
		if err := f.printer.notice("missed", page.Missed); err != nil {
			return err
		}
	}
	return f.print(page.Picks)
}

func (f *follower) print(list []json.RawMessage) error {
	for _, raw := range list {
		var p view.RecentPick
		if err := json.Unmarshal(raw, &p); err != nil {
			return fmt.Errorf("pick %.60s: %w", raw, err)
		}
		if err := f.printer.pick(raw, &p); err != nil {
			return err
		}
		f.shown++
	}
	return nil
}
