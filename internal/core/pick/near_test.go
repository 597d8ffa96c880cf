package pick

import (
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/core/affinity"
	"github.com/eppctl/eppctl/internal/core/reason"
)

// bytesQuery is a request whose ids nobody could tell.
func (f *fleet) bytesQuery(text string) *Query {
	q := f.query(nil, start)
	d := f.Affinity.Digest(affinity.Namespace{Model: model})
	d.Write([]byte(text))
	q.Bytes, q.PromptTokens, q.Unmatched = d.Prefix(), len(text)/4, reason.TokenizeFailed
	q.Origin = Origin{Provider: "bytes", Tried: []Attempt{{"native", reason.TemplateUnused, "gpt-oss"}, {"tokenize", reason.TokenizeFailed, ""}}}
	return q
}

// TestNear: TK-45. Equal bytes go where such bytes went before, at a discount; the
// card says that it is a guess, and the index of what engines announce is neither
// asked nor told.
func TestNear(t *testing.T) {
	f := newFleet(t, 4)
	f.Affinity = affinity.NewTable(1000)
	trunk := strings.Repeat("You are a helpful assistant. ", 400) // 11,600 bytes
	first, p := f.place(f.bytesQuery(trunk + "and what now?"))
	p.FirstByte(start + ms)
	p.End(start + 2*ms)
	if n := f.Index.Stats().Blocks; n != 0 {
		t.Errorf("the index has %d blocks of a prompt without ids", n)
	}
	q := f.bytesQuery(trunk + "and then?")
	c := f.decide(q)
	if winner(c) != winner(first) {
		t.Errorf("%s after %s:\n%s", winner(c), winner(first), c)
	}
	w := c.WinnerRow()
	chunks := len(trunk) / affinity.ChunkBytes
	want := int(float64(chunks*affinity.ChunkBytes) / float64(q.Bytes.Bytes) * float64(q.PromptTokens))
	if w.Near != want || w.Cached != want || w.Trust != nearTrust || w.Match.Depth != 0 || w.Match.Rank != -1 {
		t.Errorf("near %d, cached %d, trust %v, match %+v; want %d tokens", w.Near, w.Cached, w.Trust, w.Match, want)
	}
	if terms := w.Terms[0]; terms <= 0 || terms > nearTrust*c.basis.cold {
		t.Errorf("the kv term is %v s of %v", terms, c.basis.cold)
	}
	x := c.Explanation()
	if x.TokensExact || !x.Pods[0].Match.Approximate || x.Pods[1].Match.Approximate || *x.Tokenizer.Provider != "bytes" || x.Tokenizer.Status != nil ||
		len(x.Tokenizer.Tried) != 2 || x.Tokenizer.Tried[0].Reason != "template-not-used" || *x.Tokenizer.Tried[0].Detail != "gpt-oss" || x.Tokenizer.Tried[1].Detail != nil {
		t.Errorf("%+v %+v", x.Tokenizer, x.Pods[0].Match)
	}
	f.Pods.Remove(w.Pod.ID)
	for _, r := range f.decide(f.bytesQuery(trunk)).Rows {
		if r.Near != 0 || r.Reason != reason.TokenizeFailed {
			t.Errorf("%s has %d tokens after the pod was removed, reason %q", r.Pod.Spec.Name, r.Near, r.Reason)
		}
	}
}

// The whole prompt is never cached: an engine computes the last token anew.
func TestNearIsNeverAll(t *testing.T) {
	f := newFleet(t, 1)
	f.Affinity = affinity.NewTable(1000)
	text := strings.Repeat("x", 4*affinity.ChunkBytes)
	f.place(f.bytesQuery(text))
	if r := f.decide(f.bytesQuery(text)).Rows[0]; r.Near != 4*affinity.ChunkBytes/4-1 || r.Uncached != 1 {
		t.Errorf("near %d, uncached %d", r.Near, r.Uncached)
	}
}

// A request that the proxy sent to another pod is remembered there too.
func TestNearFollowsMoves(t *testing.T) {
	f := newFleet(t, 3)
	f.Affinity = affinity.NewTable(1000)
	text := strings.Repeat("y", 4*affinity.ChunkBytes)
	c, p := f.place(f.bytesQuery(text))
	other := f.pod((c.Winner + 1) % 3)
	p.Move(other, start+ms)
	for _, r := range f.decide(f.bytesQuery(text)).Rows {
		if has := r.Near > 0; has != (r.Pod.ID == other.ID || r.Pod.ID == c.WinnerRow().Pod.ID) {
			t.Errorf("%s: %d tokens", r.Pod.Spec.Name, r.Near)
		}
	}
}

func TestNearAllocs(t *testing.T) {
	f := newFleet(t, 16)
	f.Affinity = affinity.NewTable(1000)
	q := f.bytesQuery(strings.Repeat("z", 32<<10))
	_, p := f.place(q)
	p.End(start + ms)
	v, c := f.View(), &Card{}
	Decide(&v, q, f.policy, c)
	if n := testing.AllocsPerRun(100, func() { Decide(&v, q, f.policy, c) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
	if c.WinnerRow().Near == 0 {
		t.Error("nothing was found")
	}
}
