package tap

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/core/recording"
	"github.com/eppctl/eppctl/internal/inspect/out"
)

// filtered shows which of some messages' events pass, by their first hash.
func filtered(t *testing.T, l list, args ...string) []string {
	t.Helper()
	c := &Command{Source: l, Format: "table"}
	for i := 0; i < len(args); i += 2 {
		kind, not := strings.CutPrefix(args[i], "not ")
		if err := c.Filter.Add(kind, args[i+1], not); err != nil {
			t.Fatal(err)
		}
	}
	stdout, _, err := shown(t, c, &out.Streams{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range rows(stdout) {
		if strings.ToUpper(r[colEvent]) == r[colEvent] {
			got = append(got, r[colEvent])
		} else {
			got = append(got, strings.TrimLeft(r[colFirst], "0"))
		}
	}
	return got
}

func TestFilter(t *testing.T) {
	l := list{
		message(podA, 1, store(1, 1, 2), testEvent{kind: "BlockStored", hashes: []uint64{2}, tokens: []uint32{1, 2}, medium: "CPU", lora: "sql"}),
		message(podA, 2, testEvent{kind: "BlockRemoved", hashes: []uint64{1}, medium: "GPU"}),
		message(podB, 1, testEvent{kind: "BlockStored", hashes: []uint64{0xabc0000000000003}, parent: 0xdef0000000000000, tokens: []uint32{1}, medium: "DISK"}),
		note(podB, recording.Notice{Kind: recording.Gap, FromSeq: number(1), ToSeq: number(1), Count: 1}),
		message(podB, 3, testEvent{kind: "AllBlocksCleared"}),
		message(podB, 4, testEvent{kind: "BlockStored", hashes: []uint64{5}, tokens: []uint32{9}, medium: "SHARED_STORAGE"}),
	}
	const all = "1 2 1 abc0000000000003 GAP - 5"
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"nothing":                {nil, all},
		"pod":                    {[]string{"pod", "vllm-a-3"}, "1 2 1 GAP"},
		"pod glob":               {[]string{"pod", "vllm-?-*"}, "1 2 1 GAP"},
		"either pod":             {[]string{"pod", "b", "pod", "vllm-a-3"}, all},
		"a list":                 {[]string{"pod", "b,vllm-a-3"}, all},
		"rank":                   {[]string{"rank", "1"}, "abc0000000000003 GAP - 5"},
		"engine":                 {[]string{"engine", "sglang"}, "abc0000000000003 GAP - 5"},
		"model with a slash":     {[]string{"model", "org/*"}, "abc0000000000003 GAP - 5"},
		"a star spans a slash":   {[]string{"model", "o*n"}, "abc0000000000003 GAP - 5"},
		"event":                  {[]string{"event", "removed,cleared"}, "1 GAP -"},
		"only our own":           {[]string{"event", "gap"}, "GAP"},
		"tier":                   {[]string{"tier", "cpu"}, "2 GAP"},
		"tier by its other name": {[]string{"tier", "host"}, "2 GAP"},
		"shared tier":            {[]string{"tier", "shared"}, "GAP 5"},
		"TAP-05 one negated":     {[]string{"pod", "vllm-a-3", "not tier", "cpu"}, "1 1 GAP"},
		"two negated":            {[]string{"not tier", "cpu", "not event", "removed"}, "1 abc0000000000003 GAP - 5"},
		"lora":                   {[]string{"lora", "sql"}, "2 GAP"},
		"no lora":                {[]string{"not lora", "*", "event", "stored"}, "1 abc0000000000003 GAP 5"},
		"hash":                   {[]string{"hash", "abc"}, "abc0000000000003 GAP"},
		"hash of a parent":       {[]string{"hash", "0xDEF"}, "abc0000000000003 GAP"},
		"whole hash":             {[]string{"hash", "0000000000000001"}, "1 1 GAP"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(filtered(t, l, c.args...), " "); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
	for kind, bad := range map[string][]string{
		"pod": {"["}, "rank": {"x", "-1"}, "event": {"stord"}, "tier": {"tape"}, "hash": {"", "xyz", "00000000000000001"}, "token-ids": {"", "a", "1,-2"}, "colour": {"red"},
	} {
		for _, text := range bad {
			if err := (&Filter{}).Add(kind, text, false); err == nil {
				t.Errorf("--%s %q is accepted", kind, text)
			}
		}
	}
}

// Chains that begin with given ids, over blocks and messages.
func TestTokenPrefix(t *testing.T) {
	child := func(hash, parent uint64, tokens ...uint32) testEvent {
		e := store(hash, tokens...)
		e.parent = parent
		return e
	}
	removed := func(hash uint64) testEvent { return testEvent{kind: "BlockRemoved", hashes: []uint64{hash}} }
	two := testEvent{kind: "BlockStored", hashes: []uint64{0x31, 0x32}, tokens: []uint32{1, 2, 3, 4}}
	l := list{
		message(podA, 0,
			store(0x11, 1, 2),            // a part of the prefix: no chain of it yet
			child(0x12, 0x11, 3, 4),      // all of it
			child(0x13, 0x12, 9, 9),      // behind it
			child(0x14, 0x11, 7, 7),      // a branch before its end
			child(0x15, 0x14, 3, 4),      // behind the branch
			store(0x21, 5, 6),            // another chain
			child(0x41, 0xff, 1, 2),      // unknown parent, too short
			child(0x42, 0xff, 1, 2, 3),   // unknown parent, brings it all
			child(0x43, 0xff, 2, 3, 4),   // unknown parent, brings something else
			two,                          // two blocks in one store
			removed(0x12), removed(0x14), // of the chain, and not
		),
		message(podB, 0, child(0x16, 0x12, 9)), // another pod's block
		message(podA, 1, testEvent{kind: "AllBlocksCleared"}),
		message(podA, 2, child(0x17, 0x13, 9, 9)), // its parent is gone
	}
	if got := strings.Join(filtered(t, l, "token-ids", "1,2,3"), " "); got != "12 13 42 31 12" {
		t.Errorf("%q", got)
	}
	if got := strings.Join(filtered(t, l, "not token-ids", "[1, 2, 3]", "event", "removed"), " "); got != "14" {
		t.Errorf("%q", got)
	}
}

// A real prompt's blocks are found by its first tokens.
func TestTokenPrefixOfCapture(t *testing.T) {
	l := capture(t, "vllm-0.32.0/llama")
	d := &decoder{}
	for _, r := range l {
		e := d.decode(r)
		if e.Batch == nil || len(e.Batch.Events) == 0 || len(e.Batch.Events[0].Tokens) < 32 || e.Batch.Events[0].HasParent {
			continue
		}
		ids := slices.Clone(e.Batch.Events[0].Tokens[:20])
		first := e.Batch.Events[0].Hashes[0]
		f := &Filter{}
		f.prefix = newPrefix(ids)
		d2 := &decoder{}
		found := 0
		for _, r := range l {
			e := d2.decode(r)
			f.see(e)
			if e.Batch == nil {
				continue
			}
			for i := range e.Batch.Events {
				if ev := &e.Batch.Events[i]; slices.Contains(ev.Hashes, first) && f.prefix.begins(e.Pod, ev) {
					found++
				}
			}
		}
		if found == 0 {
			t.Errorf("block %x is not found by its own tokens", first)
		}
	}
}

// TAP-06: a block is always shown or never, in its store and in its removal.
func TestSample(t *testing.T) {
	var l list
	const blocks = 4000
	for h := range uint64(blocks) {
		l = append(l, message(podA, 2*h, store(h+1, 1)), message(podA, 2*h+1, testEvent{kind: "BlockRemoved", hashes: []uint64{h + 1}}))
	}
	stdout, stderr, err := shown(t, &Command{Source: l, Format: "table", Sample: 4}, nil)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, first := range columnOf(stdout, colFirst) {
		seen[first]++
	}
	for hash, n := range seen {
		if n != 2 {
			t.Errorf("TAP-06: block %s is shown %d times, want its store and its removal", hash, n)
		}
	}
	if n := len(seen); n < blocks/5 || n > blocks/3 {
		t.Errorf("TAP-06: %d of %d blocks for 1/4", n, blocks)
	}
	if !strings.Contains(stderr, " hidden by --sample") {
		t.Error(stderr)
	}
}

func TestRate(t *testing.T) {
	var l list
	for i := range int64(100) {
		m := message(podA, uint64(i), store(1, 1))
		m.At = at + i*int64(1e9)/50
		l = append(l, m)
	}
	stdout, stderr, err := shown(t, &Command{Source: l, Format: "table", Rate: 5}, nil)
	if n := len(rows(stdout)); err != nil || n < 10 || n > 15 {
		t.Errorf("%d rows of 2 s at 5/s, %v", n, err)
	}
	if !strings.Contains(stderr, "by --rate") {
		t.Error(stderr)
	}
}

// Quantiles are within an eighth of the sorted list's.
func TestLags(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var l lags
	var all []int64
	for range 10_000 {
		us := int64(r.ExpFloat64() * 20_000)
		all = append(all, us)
		l.add(us*1000 + r.Int64N(1000))
	}
	slices.Sort(all)
	for _, q := range []float64{0.01, 0.5, 0.9, 0.99, 1} {
		want := all[max(int(q*float64(len(all)))-1, 0)]
		if got := l.quantile(q); got < want || float64(got) > float64(want)*1.13+1 {
			t.Errorf("q%v is %d us, the list says %d", q, got, want)
		}
	}
	if (&lags{}).quantile(0.5) != 0 {
		t.Error("a quantile of nothing")
	}
}
