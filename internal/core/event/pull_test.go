package event_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/core/block"
	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/testdata"
)

// pullPages are the recorded answers.
func pullPages(tb testing.TB) [][]byte {
	tb.Helper()
	return contents(tb, "trtllm_pull*.json")
}

// pull runs events through one decoder and says what each came to, in short:
// "+hash.hash<parent|n tokens@tier#group" for a store, "-hash@tier" for a removal,
// "!reason tag" for a skip.
type pull struct {
	t *testing.T
	d event.PullDecoder
	b event.Batch
}

func (p *pull) do(text string) string {
	p.t.Helper()
	if err := p.d.Decode([]byte(text), &p.b); err != nil {
		p.t.Fatalf("%s: %v", text, err)
	}
	var out []string
	for i := range p.b.Events {
		out = append(out, brief(&p.b.Events[i]))
	}
	for _, s := range p.b.Skipped {
		out = append(out, "!"+s.Reason+" "+s.Tag)
	}
	return strings.Join(out, " ")
}

func brief(e *event.Event) string {
	var s strings.Builder
	s.WriteString(map[event.Kind]string{event.Stored: "+", event.Removed: "-", event.Cleared: "clear"}[e.Kind])
	for i, h := range e.Hashes {
		if i > 0 {
			s.WriteByte('.')
		}
		fmt.Fprint(&s, h)
	}
	if e.HasParent {
		fmt.Fprint(&s, "<", e.Parent)
	}
	if len(e.Tokens) > 0 {
		fmt.Fprint(&s, "|", len(e.Tokens))
	}
	fmt.Fprint(&s, "@", e.Tier)
	if e.Group > 0 {
		fmt.Fprintf(&s, "#%d%s", e.Group, e.SpecKind)
	}
	return s.String()
}

// pulledStore is a stored event: blocks are written hash:tokens, then :level.
func pulledStore(id int, window int, parent any, blocks ...string) string {
	if parent == nil {
		parent = "null"
	}
	var list []string
	for _, text := range blocks {
		var hash uint64
		n, level := 0, 0
		if c, _ := fmt.Sscanf(text, "%d:%d:%d", &hash, &n, &level); c < 2 {
			panic(text)
		}
		tokens := make([]string, n)
		for i := range tokens {
			tokens[i] = fmt.Sprintf(`{"type":"unique_token","token_id":%d,"token_extra_id":0}`, int(hash%1000)*10+i)
		}
		list = append(list, fmt.Sprintf(`{"type":"stored_block","block_hash":%d,"tokens":[%s],"cache_level":%d,"priority":35}`,
			hash, strings.Join(tokens, ","), level))
	}
	return fmt.Sprintf(`{"event_id":%d,"data":{"type":"stored","parent_hash":%v,"blocks":[%s]},"window_size":%d}`,
		id, parent, strings.Join(list, ","), window)
}

func pulledRemoval(id, window int, hashes string) string {
	return fmt.Sprintf(`{"event_id":%d,"data":{"type":"removed","block_hashes":[%s]},"window_size":%d}`, id, hashes, window)
}

func pulledMove(id, window int, hash uint64, from, to int) string {
	return fmt.Sprintf(`{"event_id":%d,"data":{"type":"updated","block_hash":%d,"cache_level":{"type":"event_diff","new_value":%d,"old_value":%d},"priority":null},"window_size":%d}`,
		id, hash, to, from, window)
}

func pulledCreated(id, window int, levels string) string {
	return fmt.Sprintf(`{"event_id":%d,"data":{"type":"created","num_blocks_per_cache_level":[%s]},"window_size":%d}`, id, levels, window)
}

func TestPulledPage(t *testing.T) {
	p := pull{t: t}
	var got []string
	page, err := os.ReadFile(filepath.Join(testdata.Dirs(t, "kv-events")[0], "trtllm_pull.json"))
	if err != nil {
		t.Fatal(err)
	}
	var next uint64
	err = event.ReadPage(bytes.NewReader(page), func(x event.Pulled) {
		if x.ID != next || x.Rank != -1 {
			t.Errorf("event %d of rank %d, want %d", x.ID, x.Rank, next)
		}
		next++
		got = append(got, p.do(string(x.Body)))
		switch x.ID {
		case 0:
			if p.b.Blocks != [event.NumTiers]int{128, 64} {
				t.Errorf("blocks %v", p.b.Blocks)
			}
		case 1:
			e := &p.b.Events[0]
			image := uint64(block.ExtraItem(0, block.IdentifyItem("a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f90"), 2))
			if !reflect.DeepEqual(e.Tokens, []uint32{1, 200, 70000, 151643, 5, 6, 7, 8}) || e.BlockSize != 4 ||
				!reflect.DeepEqual(e.Extra, []uint64{0, image}) || e.Layout != "trtllm-pull" || !e.Dense() {
				t.Errorf("%+v", e)
			}
		}
	})
	want := []string{
		"", "+18364758544493064720.81985529216486895|8@gpu",
		"+18364758544493064720@host -18364758544493064720@gpu", "", "-81985529216486895@all",
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v\n%q, want\n%q", err, got, want)
	}
}

func TestPulledEvents(t *testing.T) {
	type step struct{ in, out string }
	const w = 4096
	for name, steps := range map[string][]step{
		"a removal of a partial block is not told": {
			{pulledStore(1, w, nil, "1:4", "2:3"), "+1|4@gpu"},
			{pulledRemoval(2, w, "2"), ""},
			{pulledRemoval(3, w, "2,1"), "-2.1@all"}, // told once: the hash may be another block's by now
		},
		"a partial block is not moved": {
			{pulledStore(1, w, nil, "1:4", "2:3"), "+1|4@gpu"},
			{pulledMove(2, w, 2, 0, 1), ""},
			{pulledMove(3, w, 1, 0, 1), "+1@host -1@gpu"},
			{pulledMove(4, w, 1, 1, 0), "+1@gpu -1@host"},
		},
		"the last partial block of a longer prompt": {
			{pulledStore(1, w, nil, "1:4", "2:4", "3:1"), "+1.2|8@gpu"},
			{pulledStore(2, w, 2, "4:4", "5:2"), "+4<2|4@gpu"},
		},
		"single blocks wait until it shows what a full one is": {
			{pulledStore(1, w, nil, "1:3"), ""},
			{pulledStore(2, w, nil, "2:4"), ""},
			{pulledRemoval(3, w, "1"), ""},
			{pulledStore(4, w, 2, "3:2"), "+2|4@gpu"}, // 1 was partial, and so is 3
			{pulledRemoval(5, w, "2,3"), "-2@all"},
		},
		"two blocks show it too": {
			{pulledStore(1, w, nil, "1:4"), ""},
			{pulledStore(2, w, nil, "7:4", "8:1"), "+1|4@gpu +7|4@gpu"},
		},
		"a removal before any store means nothing": {
			{pulledRemoval(7, w, "1"), ""},
			{pulledStore(8, w, nil, "7:4", "8:1"), "+7|4@gpu"},
		},
		"levels in one store": {
			{pulledStore(1, w, 9, "1:4:1", "2:4:1", "3:4:0", "4:1:0"), "+1.2<9|8@host +3<2|4@gpu"},
		},
		"unsigned and signed hashes": {
			{pulledStore(1, w, uint64(1<<63+1), "18446744073709551615:4", "2:1"), "+18446744073709551615<9223372036854775809|4@gpu"},
			{pulledRemoval(2, w, "-1,9223372036854775809"), "-18446744073709551615.9223372036854775809@all"},
		},
		"windows are groups, the largest the first": {
			{pulledCreated(0, 512, "10"), ""}, {pulledCreated(1, 4096, "20,5"), ""},
			{pulledStore(2, 512, nil, "1:4", "2:4", "3:1"), "+1.2|8@gpu#1window"},
			{pulledStore(3, 4096, nil, "1:4", "2:4", "3:1"), "+1.2|8@gpu"},
			{pulledRemoval(4, 512, "1,3"), "-1@all#1window"},
			{pulledRemoval(5, 4096, "3"), ""},
		},
		"a late joiner learns the largest window later": {
			{pulledStore(50, 512, nil, "1:4", "2:1"), "+1|4@gpu"},
			{pulledStore(51, 4096, nil, "1:4", "2:1"), "+1|4@gpu#1"},
		},
		"a new engine may have other blocks": {
			{pulledStore(1, w, nil, "1:4", "2:1"), "+1|4@gpu"},
			{pulledCreated(0, w, "20"), ""},
			{pulledStore(1, w, nil, "1:8", "2:8"), "+1.2|16@gpu"},
		},
		"what cannot be read": {
			{pulledStore(1, w, nil, "1:4", "2:1"), "+1|4@gpu"},
			{`{"event_id":2,"data":{"type":"stored"}}`, "!no-hashes stored"},
			{`{"event_id":2,"data":{"type":"stored","blocks":7}}`, "!field-type stored"},
			{`{"event_id":2,"data":{"type":"stored","blocks":[7]}}`, "!field-type stored"},
			{`{"event_id":2,"data":{"type":"stored","blocks":[{"tokens":[]}]}}`, "!hash-type stored"},
			{`{"event_id":2,"data":{"type":"stored","blocks":[{"block_hash":1.5,"tokens":[]}]}}`, "!hash-type stored"},
			{`{"event_id":2,"data":{"type":"stored","blocks":[{"block_hash":18446744073709551616,"tokens":[]}]}}`, "!hash-type stored"},
			{`{"event_id":2,"data":{"type":"stored","blocks":[{"block_hash":3,"tokens":[{"token_id":"mm"}]}]}}`, "!token-type stored"},
			{`{"event_id":2,"data":{"type":"stored","blocks":[{"block_hash":3,"tokens":[{"token_id":4294967296}]}]}}`, "!token-type stored"},
			{`{"event_id":2,"data":{"type":"stored","blocks":[{"block_hash":3,"tokens":[7]}]}}`, "!token-type stored"},
			{`{"event_id":2,"data":{"type":"removed"}}`, "!no-hashes removed"},
			{`{"event_id":2,"data":{"type":"removed","block_hashes":["x"]}}`, "!hash-type removed"},
			{`{"event_id":2,"data":{"type":"updated","block_hash":1,"cache_level":1}}`, "!field-type updated"},
			{`{"event_id":2,"data":{"type":"updated","block_hash":1,"cache_level":{"new_value":1}}}`, "!field-type updated"},
			{`{"event_id":2,"data":{"type":"updated"}}`, "!hash-type updated"},
			{`{"event_id":2,"data":{"type":"flushed"}}`, "!unknown-tag flushed"},
			{`{"event_id":2,"data":{"type":3}}`, "!tag-type "},
			{`{"event_id":2,"data":{}}`, "!no-tag "},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := pull{t: t}
			for i, s := range steps {
				if got := p.do(s.in); got != s.out {
					t.Errorf("step %d: %q, want %q", i, got, s.out)
				}
				for _, sk := range p.b.Skipped {
					if want := sk.Tag != "stored" && sk.Tag != "flushed"; sk.Removes != want {
						t.Errorf("step %d: may have removed: %v", i, sk.Removes)
					}
				}
			}
		})
	}
	t.Run("forgetting", func(t *testing.T) { // the index dropped what it had
		p := pull{t: t}
		p.do(pulledStore(1, 512, nil, "1:4", "2:1"))
		p.do(pulledStore(2, 4096, nil, "1:4", "2:1"))
		p.d.Forget()
		if got := p.do(pulledRemoval(9, 4096, "2")); got != "-2@all" {
			t.Errorf("a partial block of before: %q", got)
		}
		if got := p.do(pulledStore(10, 512, nil, "3:4")) + p.do(pulledStore(11, 4096, nil, "3:4")); got != "+3|4@gpu#1window+3|4@gpu" {
			t.Errorf("windows: %q", got)
		}
	})
	t.Run("the largest block, where nothing tells", func(t *testing.T) {
		p := pull{t: t}
		p.do(pulledStore(1, w, nil, "1:3"))
		p.do(pulledStore(2, w, nil, "2:4"))
		got := ""
		for i := 3; got == "" && i < 3000; i++ {
			got = p.do(pulledRemoval(i, w, "99"))
		}
		if !strings.HasPrefix(got, "+2|4@gpu -99@all") {
			t.Errorf("%.60q", got)
		}
	})
	t.Run("unknown names", func(t *testing.T) {
		p := pull{t: t}
		p.do(`{"event_id":0,"hash_algo":"v1","layer_group_id":0,"attention_dp_rank":3,"shade":1,"data":{"type":"stored","colour":2,"blocks":[{"block_hash":1,"hue":1,"tokens":[{"token_id":1,"tint":0}]},{"block_hash":2,"tokens":[]}]}}`)
		want := []event.Unknown{{Name: "event.shade", Count: 1}, {Name: "data.colour", Count: 1}, {Name: "token.tint", Count: 1}, {Name: "block.hue", Count: 1}}
		if !sameUnknown(p.b.Unknown, want) || p.b.Rank != 3 {
			t.Errorf("%+v, rank %d", p.b.Unknown, p.b.Rank)
		}
	})
	t.Run("extra ids keep blocks apart", func(t *testing.T) {
		p := pull{t: t}
		p.do(`{"event_id":0,"data":{"type":"stored","blocks":[{"block_hash":1,"tokens":[{"token_id":1,"token_extra_id":7}]},{"block_hash":2,"tokens":[{"token_id":1,"token_extra_id":0}]}]}}`)
		if x := p.b.Events[0].Extra; len(x) != 2 || x[0] == 0 || x[1] != 0 {
			t.Errorf("%x", x)
		}
	})
	t.Run("no event", func(t *testing.T) {
		for _, text := range []string{``, `7`, `{}`, `{"event_id":1}`, `{"data":7}`, `{"data":{"type":"stored"`, `[]`} {
			var d event.PullDecoder
			var b event.Batch
			if err := d.Decode([]byte(text), &b); err == nil || len(b.Events)+len(b.Skipped) > 0 {
				t.Errorf("%s: %v, %+v", text, err, b.Events)
			}
		}
	})
}

// TestPulledPayload: a decoder of payloads reads pulled events as well.
func TestPulledPayload(t *testing.T) {
	var d event.Decoder
	var b event.Batch
	for _, text := range []string{pulledStore(1, 4096, nil, "1:4:1", "2:2"), pulledRemoval(2, 4096, "2,1")} {
		if err := d.Decode([]byte(text), &b); err != nil || len(b.Events) != 1 {
			t.Fatalf("%v, %+v", err, b)
		}
	}
	if e := &b.Events[0]; len(e.Hashes) != 1 || e.Tier != event.TierAll {
		t.Errorf("%+v", e)
	}
	if err := d.Decode([]byte("{"), &b); err == nil || len(b.Events) > 0 {
		t.Errorf("%v, %+v", err, b)
	}
}

func sameUnknown(a, b []event.Unknown) bool {
	count := map[event.Unknown]int{}
	for _, u := range a {
		count[u]++
	}
	for _, u := range b {
		count[u]--
	}
	for _, n := range count {
		if n != 0 {
			return false
		}
	}
	return true
}

func TestReadPage(t *testing.T) {
	read := func(page string) (ids []string, err error) {
		err = event.ReadPage(strings.NewReader(page), func(p event.Pulled) {
			ids = append(ids, fmt.Sprint(p.ID, "/", p.Rank, ":", len(p.Body)))
		})
		return ids, err
	}
	for page, want := range map[string]string{
		``:                   "[] kv event page: EOF",
		`[]`:                 "[] <nil>",
		`null`:               "[] <nil>",
		`[{},null]`:          "[] <nil>",
		`{}`:                 "[] kv event page: no list of events",
		`[{"data":{}}]`:      "[] kv event page: event 0: no event_id",
		`[{"event_id":1.5}]`: "[] kv event page: event 0: no event_id",
		` [{"event_id":7}] `: "[7/-1:14] <nil>",
		`[{"event_id":18446744073709551615,"attention_dp_rank":2}]`: "[18446744073709551615/2:55] <nil>",
	} {
		ids, err := read(page)
		if got := fmt.Sprint(ids, " ", err); got != want {
			t.Errorf("%s: %s, want %s", page, got, want)
		}
	}
	// What came before the cut was taken from the engine: it must not be lost too.
	whole := `[{"event_id":1,"data":{}},{"event_id":2,"data":{}}]`
	for n := range whole {
		ids, err := read(whole[:n])
		if err == nil || n > 30 && len(ids) == 0 {
			t.Errorf("cut at %d: %v %v", n, ids, err)
		}
	}
}

func TestPullAllocatesNothing(t *testing.T) {
	var blocks []string
	for i := range 64 {
		blocks = append(blocks, fmt.Sprintf("%d:32", i+1))
	}
	text := []byte(pulledStore(1, 4096, nil, blocks...))
	removal := []byte(pulledRemoval(2, 4096, "1,2,3"))
	move := []byte(pulledMove(3, 4096, 4, 0, 1))
	var d event.PullDecoder
	var b event.Batch
	if n := testing.AllocsPerRun(100, func() {
		for _, x := range [][]byte{text, removal, move} {
			if err := d.Decode(x, &b); err != nil || len(b.Events) == 0 {
				t.Fatal(err, b.Skipped)
			}
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkPull(b *testing.B) {
	var blocks []string
	for i := range 64 {
		blocks = append(blocks, fmt.Sprintf("%d:32", i+1))
	}
	text := []byte(pulledStore(1, 4096, nil, blocks...))
	page := append(append([]byte{'['}, text...), ']')
	b.Run("event", func(b *testing.B) {
		var d event.PullDecoder
		var out event.Batch
		b.SetBytes(int64(len(text)))
		b.ReportAllocs()
		for b.Loop() {
			if err := d.Decode(text, &out); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("page", func(b *testing.B) {
		b.SetBytes(int64(len(page)))
		b.ReportAllocs()
		for b.Loop() {
			if err := event.ReadPage(bytes.NewReader(page), func(event.Pulled) {}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
