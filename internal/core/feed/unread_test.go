package feed

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/tinylib/msgp/msgp"

	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/core/view"
	"github.com/eppctl/eppctl/internal/sim/zmtp"
)

// join makes one batch of the events of several batches of one, as batchOf
// begins them.
func join(batches ...[]byte) []byte {
	head, tail := len(batchOf(0)), 1 // the rank
	b := msgp.AppendArrayHeader(msgp.AppendFloat64(msgp.AppendArrayHeader(nil, 3), 0), uint32(len(batches)))
	for _, one := range batches {
		b = append(b, one[head:len(one)-tail]...)
	}
	return msgp.AppendInt(b, 0)
}

// tagged is a batch of one event with this tag, as msgpack, and one field that
// no event of any kind has in that place.
func tagged(tag []byte) []byte {
	b := append(msgp.AppendArrayHeader(batchOf(0), 2), tag...)
	return msgp.AppendInt(msgp.AppendFloat64(b, 1.5), 0)
}

func tag(s string) []byte { return msgp.AppendString(nil, s) }

// What cannot be read may have been a removal: then the blocks go, once for each
// time, and the stream is complete no more, until the engine clears its cache.
func TestUnreadable(t *testing.T) {
	for _, c := range []struct {
		name  string
		bad   []byte
		ops   string // of bad, between +2 and +3 in one batch
		state view.SyncState
	}{
		{"removal without hashes", tagged(tag("BlockRemoved")), "purge +3", view.Partial},
		{"clear of an unreadable medium", tagged(tag("AllBlocksCleared")), "purge +3", view.Partial},
		{"tag of another type", tagged(msgp.AppendInt(nil, 7)), "purge +3", view.Partial},
		{"no event at all", msgp.AppendInt(msgp.AppendString(batchOf(0), "BlockRemoved"), 0), "purge +3", view.Partial},
		{"empty event", msgp.AppendInt(msgp.AppendArrayHeader(batchOf(0), 0), 0), "purge +3", view.Partial},
		{"store without hashes", tagged(tag("BlockStored")), "+2 +3", view.Live},
		{"transfer to an unreadable medium", tagged(tag("BlockTransferred")), "purge +3", view.Partial},
		{"event of another kind", tagged(tag("BlockPinned")), "+2 +3", view.Live},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, r := following(t)
			p.Send("", 0, stored(1))
			p.Send("", 1, join(stored(2), c.bad, stored(3)))
			r.waitOps("+1 " + c.ops)
			r.waitState(c.state)
			purges := uint64(strings.Count(c.ops, "purge"))
			if n := r.counters().Purges[purgeUnread]; n != purges {
				t.Errorf("%d purges counted, want %d", n, purges)
			}
			p.Send("", 2, cleared())
			r.waitOps("+1 " + c.ops + " clear")
			r.waitState(view.Live)
		})
	}
}

// A batch that is none at all, live and in a replay; the bytes are the same
// however often they are fetched.
func TestUndecodable(t *testing.T) {
	p := publisher(t, "127.0.0.1:0", zmtp.Options{})
	history := replayServer(t, zmtp.ReplayOptions{})
	history.Record(0, "", stored(0))
	history.Record(1, "", []byte("no msgpack"))
	history.Record(2, "", stored(2))
	r := subscribe(t, to(p), history.Addr())
	var text bytes.Buffer
	r.sub.log = slog.New(slog.NewTextHandler(&text, nil))
	r.start()
	r.waitOps("+0 purge +2")
	subscribed(t, p)
	p.Send("", 3, stored(3))
	p.Send("", 4, []byte("no msgpack"))
	p.Send("", 5, stored(5))
	r.waitOps("+0 purge +2 +3 purge +5")
	eventually(t, "partial with its reason", func() bool {
		s := r.sub.board.Get(r.sub.member)
		return s.State == view.Partial && s.Why == reason.Undecodable && strings.Contains(s.Detail, "decoded") && s.LastSeq == 5
	}, func() string { return fmt.Sprintf("%+v", r.sub.board.Get(r.sub.member)) })
	r.stop()
	if c := r.counters(); c.Undecodable != 2 || c.Purges[purgeUnread] != 2 || c.Replays["filled"] != 1 || c.Replays["failed"] != 0 {
		t.Errorf("%+v", c)
	}
	if n := strings.Count(text.String(), "dropped the cached blocks"); n != 1 {
		t.Errorf("logged %d times:\n%s", n, text.String())
	}
}

func TestHoleIn(t *testing.T) {
	three := make([]event.Event, 3)
	for _, c := range []struct {
		skipped []event.Skip
		err     error
		behind  int
		hole    bool
	}{
		{nil, nil, 0, false},
		{nil, errors.New("cut"), 0, true},
		{[]event.Skip{{Tag: "BlockRemoved", Removes: true}}, nil, 0, true},
		{[]event.Skip{{Tag: "BlockRemoved", Removes: true, Before: 2}}, nil, 2, true},
		{[]event.Skip{{Tag: "BlockStored", Before: 1}, {Tag: "AllBlocksCleared", Removes: true, Before: 2}}, nil, 2, true},
		{[]event.Skip{{Removes: true, Before: 1}, {Tag: "BlockStored", Before: 2}}, nil, 1, true},
		{[]event.Skip{{Tag: "BlockRemoved", Removes: true}, {Tag: "BlockRemoved", Removes: true, Before: 3}}, nil, 3, true},
		{[]event.Skip{{Tag: "Ignored", Before: 1}}, nil, 0, false},
	} {
		behind, why, detail := holeIn(&event.Batch{Events: three, Skipped: c.skipped}, c.err)
		if behind != c.behind || (why != reason.None) != c.hole || (detail != "") != c.hole {
			t.Errorf("%+v %v: behind %d, %q", c.skipped, c.err, behind, detail)
		}
	}
}
