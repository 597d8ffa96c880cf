package native_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/core/tokenizer/native"
)

// tokensBetween makes texts in which added tokens stand close to words and blanks, one
// of them the beginning of another.
func tokensBetween(r *rand.Rand) string {
	var b strings.Builder
	for range 1 + r.IntN(12) {
		b.WriteString([]string{"<a>", "<a><b>", "<b>", " ", " ", "the", "world", "in", "x y", "<", "a>"}[r.IntN(11)])
	}
	return b.String()
}

// prepended is a file as Llama-2's: a blank before each stretch of text, behind added
// tokens too.
func prepended(t *testing.T) *native.Tokenizer {
	blank := object{"type": "Replace", "pattern": object{"String": " "}, "content": "▁"}
	o := object{"normalizer": sequence("normalizers", object{"type": "Prepend", "prepend": "▁"}, blank), "model": charModel(true)}
	o["added_tokens"] = components()["metaspace first"]["added_tokens"]
	return loadObject(t, o)
}

// TestCutsBehindTokens: where a blank is put before what follows an added token, no cut
// inside text stands there, and a cut behind the token has it put.
func TestCutsBehindTokens(t *testing.T) {
	tok, r := prepended(t), rand.New(rand.NewPCG(1, 1))
	if tok.Info().Split != "blanks" || !tok.Info().Cuts {
		t.Fatalf("%+v", tok.Info())
	}
	inside, behind := 0, 0
	for range 5000 {
		s := tokensBetween(r)
		whole := encode(t, tok, s)
		for _, c := range tok.CutsOf(s) {
			if got := slices.Concat(encode(t, tok, s[:c.At]), tok.EncodePart(s[c.At:], c.Inside)); !slices.Equal(got, whole) {
				t.Fatalf("%q cut at %d: %s", s, c.At, difference(got, whole))
			}
			if c.Inside {
				inside++
			} else {
				behind++
			}
		}
	}
	if inside < 100 || behind < 100 {
		t.Errorf("%d cuts inside text, %d behind tokens", inside, behind)
	}
}

// TestSettledBehindTokens: an added token at the end is not settled while a longer one
// could stand in its place.
func TestSettledBehindTokens(t *testing.T) {
	tok, r := prepended(t), rand.New(rand.NewPCG(2, 2))
	if end := tok.Settled("the<a>", 6); end > 3 {
		t.Errorf("settled up to %d, and <a><b> may follow", end)
	}
	beyond := 0
	for range 5000 {
		s := tokensBetween(r)
		end := tok.Settled(s, len(s))
		settled := encode(t, tok, s[:end])
		for _, more := range []string{"", "<b>", "<a>", " the", "b>"} {
			if got := encode(t, tok, s+more); len(got) < len(settled) || !slices.Equal(got[:len(settled)], settled) {
				t.Fatalf("%q, settled up to %d, goes on with %q: %s", s, end, more, difference(got, settled))
			}
		}
		if end > 0 {
			beyond++
		}
	}
	if beyond < 100 {
		t.Errorf("of %d texts a part is settled", beyond)
	}
}

// TestCacheAtTheStart: a chunk that begins a text and the same one inside it have other
// ids where a blank is put in front.
func TestCacheAtTheStart(t *testing.T) {
	tok := load(t, "mistral_v3")
	c := native.NewCache(tok, 1<<20)
	s := strings.Repeat(" hello", 3000)
	want := encode(t, tok, s)
	for range 2 {
		if got, _, err := c.Encode(s, false); err != nil || !slices.Equal(got, want) {
			t.Fatal(err, difference(got, want))
		}
	}
}

// TestNoCutInTokens: a vocabulary with an added token that holds a blank, or a Chinese
// stop, between letters has no cuts inside text.
func TestNoCutInTokens(t *testing.T) {
	for _, content := range []string{"the world", "中国。"} {
		o := components()["metaspace first"]
		o["added_tokens"] = []object{with(added(content), "id", len(charModel(true)["vocab"].(object)))}
		tok := loadObject(t, o)
		s := "in " + content + " in the world"
		whole := encode(t, tok, s)
		for _, c := range tok.CutsOf(s) {
			if got := slices.Concat(encode(t, tok, s[:c.At]), tok.EncodePart(s[c.At:], c.Inside)); !slices.Equal(got, whole) {
				t.Errorf("%q cut at %d: %s", s, c.At, difference(got, whole))
			}
		}
		if tok.Info().Cuts {
			t.Errorf("%q: long texts are said to be cut", content)
		}
	}
}
