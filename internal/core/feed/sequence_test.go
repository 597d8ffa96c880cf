package feed

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/view"
)

// world drives a sequence through a script and plays the engine's replay port.
type world struct {
	t    *testing.T
	q    sequence
	now  int64
	held []uint64        // what the replay port has
	bad  map[uint64]bool // batches that cannot be read
	over map[uint64]bool // batches after which the index holds too many blocks
	dead bool            // it never answers
	cut  bool            // the live connection ends during the next replay
	out  []string
}

func (w *world) say(format string, args ...any) { w.out = append(w.out, fmt.Sprintf(format, args...)) }

// take applies a batch.
func (w *world) take(format string, seq uint64) {
	if w.bad[seq] {
		w.say("purge:%s", w.q.unread("cannot be read", w.now).purge)
	}
	w.say(format, seq)
	if w.over[seq] {
		delete(w.over, seq)
		w.say("purge:%s", w.q.inflated(w.now).purge)
	}
}

func (w *world) perform(s step, live *uint64) {
	if s.purge != "" {
		w.say("purge:%s", s.purge)
	}
	switch s.do {
	case apply:
		w.take("%d", *live)
	case replay:
		w.say("ask:%d", s.from)
		end := w.replay(s)
		e := w.q.ended(end, "replay failed", w.now)
		if e.purge != "" {
			w.say("purge:%s", e.purge)
		}
		if live != nil {
			w.perform(w.q.settle(*live, w.now), live)
		}
	}
}

func (w *world) replay(s step) replayEnd {
	if w.cut {
		w.cut = false
		return replayAborted
	}
	if w.dead {
		return replayFailed
	}
	first := true
	for _, seq := range w.held {
		if seq < s.from {
			continue
		}
		r := w.q.replayed(seq, first, w.now)
		first = false
		if r.purge != "" {
			w.say("purge:%s", r.purge)
		}
		if r.do == apply {
			w.take("r%d", seq)
		}
		if r.do == hole {
			return replayFailed
		}
		if s.until > 0 && w.q.next() >= s.until {
			return replayFilled
		}
	}
	if s.until > 0 {
		return replayFailed
	}
	return replayFilled
}

// run understands: up, down, N (a live batch), bad:N (batch N cannot be read,
// live or replayed), over:N (there are too many blocks after batch N, once), drop:N-M, id:X, guess:X, clear,
// wait:SECONDS, port:N-M, port:none (from the start: no replay endpoint), port:dead,
// port:late:N-M (an endpoint that becomes known now), cut.
func (w *world) run(script string) {
	w.t.Helper()
	for cmd := range strings.FieldsSeq(script) {
		w.now += int64(time.Millisecond)
		var a, b uint64
		word, arg, _ := strings.Cut(cmd, ":")
		switch word {
		case "up":
			w.perform(w.q.up(w.now), nil)
		case "down":
			w.q.down("eof")
		case "clear":
			w.q.cleared()
		case "cut":
			w.cut = true
		case "wait":
			fmt.Sscan(arg, &a)
			w.now += int64(a) * int64(time.Second)
		case "id", "guess":
			fmt.Sscan(arg, &a)
			w.perform(w.q.identify(identity{id: float64(a), guessed: word == "guess", at: w.now}, w.now), nil)
		case "bad": // from now on
			fmt.Sscan(arg, &a)
			if w.bad == nil {
				w.bad = map[uint64]bool{}
			}
			w.bad[a] = true
		case "over":
			fmt.Sscan(arg, &a)
			w.over = map[uint64]bool{a: true}
		case "drop":
			fmt.Sscanf(arg, "%d-%d", &a, &b)
			w.perform(w.q.dropped(b-a+1, b, w.now), nil)
		case "port":
			w.dead, w.held = arg == "dead", nil
			late, isLate := strings.CutPrefix(arg, "late:")
			if _, err := fmt.Sscanf(late, "%d-%d", &a, &b); err == nil {
				for i := a; i <= b; i++ {
					w.held = append(w.held, i)
				}
			}
			switch {
			case isLate:
				w.perform(w.q.replayable(w.now), nil)
			default:
				w.q.canReplay = arg != "none"
			}
		default:
			if _, err := fmt.Sscan(cmd, &a); err != nil {
				w.t.Fatalf("script word %q", cmd)
			}
			w.perform(w.q.batch(a, w.now), &a)
		}
	}
}

func TestSequence(t *testing.T) {
	for _, c := range []struct {
		name, script, want string
		state              view.SyncState
		lost               uint64
	}{
		{"ZF-18 from the start", "port:none up 0 1 2", "0 1 2", view.Synced, 0},
		{"ZF-19 gap filled", "port:none up 0 1 2 3 4 5 6 7 8 9 10 port:0-15 15",
			"0 1 2 3 4 5 6 7 8 9 10 ask:11 r11 r12 r13 r14 15", view.Synced, 0},
		{"ZF-19 first live number 10", "port:0-9 up port:0-15 10 15",
			"ask:0 r0 r1 r2 r3 r4 r5 r6 r7 r8 r9 10 ask:11 r11 r12 r13 r14 15", view.Synced, 0},
		{"ZF-20 gap without replay port", "port:none up 0 1 5 6", "0 1 purge:gap 5 6", view.Partial, 3},
		{"ZF-21 restart after reconnect", "port:none up id:7 0 1 2 down up id:7 0 1", "0 1 2 purge:restart 0 1", view.Synced, 0},
		{"ZF-22 restart seen late", "port:none up id:7 0 down up id:7 500 down up 1",
			"0 purge:gap 500 purge:restart 1", view.Partial, 499},
		{"ZF-23 duplicate, then back", "port:none up 0 1 2 3 4 5 6 7 7 port:0-6 6",
			"0 1 2 3 4 5 6 7 purge:restart ask:0 r0 r1 r2 r3 r4 r5 6", view.Synced, 0},
		{"ZF-24 identity changed, numbers go on", "port:none up id:7 0 1 2 down up 3 id:8 4",
			"0 1 2 3 purge:identity 4", view.Partial, 0},
		{"ZF-24 purge needs no event", "port:none up id:7 0 1 down up id:8", "0 1 purge:identity", view.CatchingUp, 0},
		{"ZF-25 late join", "port:dead up wait:31 port:0-12 10 11", "ask:0 ask:0 r0 r1 r2 r3 r4 r5 r6 r7 r8 r9 10 11", view.Synced, 0},
		{"ZF-25 replay runs ahead of live", "port:0-3 up 2 3 4", "ask:0 r0 r1 r2 r3 4", view.Synced, 0},
		{"ZF-26 replay begins late", "port:60-62 up 62 63", "ask:0 purge:history-gone r60 r61 r62 63", view.Partial, 0},
		{"ZF-26 middle of the history gone", "port:none up 0 1 port:60-99 100", "0 1 ask:2 purge:history-gone r60 r61 r62 r63 r64 r65 r66 r67 r68 r69 r70 r71 r72 r73 r74 r75 r76 r77 r78 r79 r80 r81 r82 r83 r84 r85 r86 r87 r88 r89 r90 r91 r92 r93 r94 r95 r96 r97 r98 r99 100", view.Partial, 58},
		{"ZF-27 numbers from 1", "port:1-3 up 4", "ask:0 r1 r2 r3 4", view.Synced, 0},
		{"ZF-27 empty, then 1 live", "port:0- up port:1-1 1 2", "ask:0 ask:0 r1 2", view.Synced, 0},
		{"ZF-31 start beyond the head", "port:0-1 up id:7 2 down up id:7 3", "ask:0 r0 r1 2 ask:3 3", view.Synced, 0},
		{"ZF-32 live removal waits for the replayed store", "port:0-1 up 2", "ask:0 r0 r1 2", view.Synced, 0},
		{"ZF-34 replay that never progresses", "port:dead up 5 6", "ask:0 5 6", view.Partial, 0},

		{"reconnect to the same engine fetches what it missed", "port:none up id:7 0 1 down up port:0-3 id:7 4",
			"0 1 ask:2 r2 r3 4", view.Synced, 0},
		{"restart after a replay that ran ahead of live", "port:0-3 up id:7 down port:none up 2", "ask:0 r0 r1 r2 r3 purge:restart 2", view.Partial, 0},
		{"reconnect not confirmed yet", "port:none up id:7 0 1 down up 2", "0 1 2", view.CatchingUp, 0},
		{"reconnect without identity is a restart", "port:none up 0 1 down up", "0 1 purge:reconnect", view.CatchingUp, 0},
		{"reconnect without identity, with replay", "port:none up 0 1 down port:0-4 up 5", "0 1 purge:reconnect ask:0 r0 r1 r2 r3 r4 5", view.Synced, 0},
		{"connection lost", "port:none up 0 down", "0", view.Connecting, 0},
		{"identity purge not repeated after a restart by number", "port:none up id:7 0 1 2 down up 0 1 id:8 2",
			"0 1 2 purge:restart 0 1 2", view.Synced, 0},
		{"identity purge although a gap purged before", "port:none up id:7 0 5 down up id:8", "0 purge:gap 5 purge:identity", view.CatchingUp, 4},
		{"several processes at one port", "port:none up id:7 0 id:9 0 id:7 0 1 id:9 id:7 2 down up", "0 purge:identity 0 purge:identity 0 1 2 purge:reconnect", view.CatchingUp, 0},
		{"guessed restart", "port:none up guess:0 0 1 guess:1", "0 1 purge:identity", view.CatchingUp, 0},
		{"guess does not confirm a reconnect", "port:none up guess:0 0 1 down up guess:0", "0 1 purge:reconnect", view.CatchingUp, 0},
		{"replay cut by a disconnect keeps the hole", "port:none up id:7 0 1 port:0-9 cut 5", "0 1 ask:2", view.Gap, 0},
		{"and fills it after the reconnect", "port:none up id:7 0 1 port:0-9 cut 5 down up id:7 9", "0 1 ask:2 ask:2 r2 r3 r4 r5 ask:6 r6 r7 r8 9", view.Synced, 0},
		{"our own drop is refilled", "port:none up 0 1 port:0-9 drop:2-5 6", "0 1 ask:2 r2 r3 r4 r5 6", view.Synced, 0},
		{"a second drop within the cooldown costs the blocks", "port:none up 0 1 port:0-9 drop:2-5 drop:6-7 8", "0 1 ask:2 r2 r3 r4 r5 purge:gap 8", view.Partial, 2},
		{"a drop that hides a restart", "port:none up 5 6 drop:0-1 2", "5 6 purge:restart 2", view.Partial, 0},
		{"failed replay is retried after the cooldown", "port:none up 0 1 port:dead 5 6 wait:31 port:0-9 7",
			"0 1 ask:2 purge:gap 5 6 ask:0 purge:retry r0 r1 r2 r3 r4 r5 r6 7", view.Synced, 3},
		{"a retry that gets no answer costs nothing", "port:none up 0 1 port:dead 5 6 wait:31 7 8",
			"0 1 ask:2 purge:gap 5 6 ask:0 7 8", view.Partial, 3},
		{"partial ends with a clear", "port:none up 0 5 clear 6", "0 purge:gap 5 6", view.Synced, 4},
		{"partial ends with a restart at 0", "port:none up 5 0", "5 purge:restart 0", view.Synced, 0},
		{"first number 0 after a failed replay", "port:dead up 0 1", "ask:0 0 1", view.Synced, 0},
		{"replay port learned late", "port:none up port:late:0-2 3", "ask:0 r0 r1 r2 3", view.Synced, 0},
		{"replay port learned when partial", "port:none up 3 port:late:0-3 4", "3 ask:0 purge:retry r0 r1 r2 r3 4", view.Synced, 0},
		{"an engine that never published", "port:0- up", "ask:0", view.Synced, 0},
		{"KV-52 more blocks than the engine has", "port:none over:1 up 0 1 2", "0 1 purge:inflated 2", view.Partial, 0},
		{"KV-52 resync", "port:0-1 over:2 up 2 3 port:0-9 wait:31 4", "ask:0 r0 r1 2 purge:inflated 3 ask:0 purge:retry r0 r1 r2 r3 4", view.Synced, 0},
		{"KV-52 resync waits", "port:0-1 over:2 up 2 3 port:0-9 wait:29 4", "ask:0 r0 r1 2 purge:inflated 3 4", view.Partial, 0},
		{"unreadable batch is a hole", "port:none bad:1 up 0 1 2", "0 purge:unreadable 1 2", view.Partial, 0},
		{"unreadable batch is not asked for again", "port:0-1 up bad:3 2 port:0-9 3 4 wait:31 5", "ask:0 r0 r1 2 purge:unreadable 3 4 5", view.Partial, 0},
		{"unreadable batch in a replay", "port:0-3 bad:1 up 4 wait:31 5", "ask:0 r0 purge:unreadable r1 r2 r3 4 5", view.Partial, 0},
		{"a port learned late does not mend it", "port:none bad:1 up 0 1 port:late:0-1 wait:31 2", "0 purge:unreadable 1 2", view.Partial, 0},
		{"unreadable batch, then a clear", "port:none bad:1 up 0 1 clear 2", "0 purge:unreadable 1 2", view.Synced, 0},
		{"unreadable batch, then a restart", "port:none bad:1 up 0 1 0", "0 purge:unreadable 1 purge:restart 0", view.Synced, 0},
		{"unreadable batch, then a gap", "port:none bad:1 up 0 1 3", "0 purge:unreadable 1 purge:gap 3", view.Partial, 1},
		{"failed speculative replay costs nothing", "port:none up id:7 0 1 down port:dead up id:7 2", "0 1 ask:2 2", view.Synced, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := &world{t: t}
			w.run(c.script)
			if got := strings.Join(w.out, " "); got != c.want {
				t.Errorf("script %s\n got %s\nwant %s", c.script, got, c.want)
			}
			if st, why := w.q.state(); st != c.state {
				t.Errorf("state %v (%s), want %v", st, why, c.state)
			}
			if w.q.lost != c.lost {
				t.Errorf("lost %d, want %d", w.q.lost, c.lost)
			}
		})
	}
}

// The promise of the machine, against an engine that restarts, a stream that
// cuts and loses, and a replay that forgets: when it says synced, exactly the
// batches of the present process are applied, each once and in order; and it
// never holds a batch next to a hole.
func TestSequenceHoldsItsPromise(t *testing.T) {
	for seed := range uint64(1500) {
		r := rand.New(rand.NewPCG(seed, 1))
		w := &world{t: t}
		w.q.canReplay = r.IntN(4) > 0
		type applied struct{ process, seq uint64 }
		var process, next uint64 = 1, 0
		var index []applied
		connected := false
		check := func(at string) {
			for i := 1; i < len(index); i++ {
				if index[i].process == index[i-1].process && index[i].seq != index[i-1].seq+1 {
					t.Fatalf("seed %d, %s: holds %v", seed, at, index)
				}
			}
			st, _ := w.q.state()
			if st != view.Synced {
				return
			}
			for i, a := range index {
				if a != (applied{process, uint64(i)}) {
					t.Fatalf("seed %d, %s: synced with %v of process %d", seed, at, index, process)
				}
			}
		}
		take := func() { // read what perform said into the index
			for _, o := range w.out {
				var seq uint64
				switch {
				case strings.HasPrefix(o, "purge:"):
					index = nil
				case strings.HasPrefix(o, "ask:"):
				default:
					fmt.Sscan(strings.TrimPrefix(o, "r"), &seq)
					index = append(index, applied{process, seq})
				}
			}
			w.out = nil
		}
		do := func(script string) { w.run(script); take(); check(script) }
		do(fmt.Sprintf("id:%d up", process))
		connected = true
		for range 60 {
			w.dead = r.IntN(8) == 0
			switch k := r.IntN(20); {
			case k < 12: // publish
				w.held = append(w.held, next)
				if len(w.held) > 6 {
					w.held = w.held[1:]
				}
				if w.held[0] == 1 { // ZF-27: would be taken for the very first
					w.held = w.held[1:]
				}
				seq := next
				next++
				switch {
				case !connected || r.IntN(10) == 0: // lost
				case r.IntN(10) == 0:
					do(fmt.Sprintf("drop:%d-%d", seq, seq))
				default:
					do(fmt.Sprint(seq))
				}
			case k < 14 && connected:
				do("down")
				connected = false
			case k < 15:
				if connected {
					do("down")
				}
				process, next, w.held = process+1, 0, nil
				// The process is seen before anything it publishes arrives; the
				// other order is the table's business.
				do(fmt.Sprintf("up id:%d", process))
				connected = true
			case k < 18 && !connected:
				do(fmt.Sprintf("up id:%d", process))
				connected = true
			default:
				do("wait:20")
			}
		}
	}
}
