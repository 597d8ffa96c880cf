package native_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/eppctl/eppctl/internal/core/tokenizer/native"
)

// TestTK05 and TestTK06 are single cases of the reference, by their ids.
func TestTK06(t *testing.T) {
	if got := encode(t, load(t, "qwen3"), "text<|im_start|>mid<|im_end|>text"); !slices.Equal(got, []uint32{1318, 151644, 16106, 151645, 1318}) {
		t.Error(got)
	}
	// A near miss is ordinary text.
	for _, id := range encode(t, load(t, "qwen3"), "<|im_end < |im_end| >") {
		if id >= 151643 {
			t.Error(id)
		}
	}
}

// TestTK63: a warm call allocates its result and nothing else, with NFC to do too.
func TestTK63(t *testing.T) {
	for _, name := range names() {
		tok := load(t, name)
		for _, text := range []string{
			strings.Repeat("The quick brown fox, 12 of them: jumps(over) <|im_start|>lazy dogs. 中文也可以。\n", 300),
			strings.Repeat("cafe\u0301 ", 300),
		} {
			encode(t, tok, text)
			if n := testing.AllocsPerRun(20, func() { encode(t, tok, text) }); n > 2 {
				t.Errorf("%s: %v allocations", name, n)
			}
		}
	}
}

// TestUnigramAllocations: a call by Viterbi makes room for its pieces, not for each of
// them. The race detector's pools forget at random.
func TestUnigramAllocations(t *testing.T) {
	tok := loadObject(t, components()["unigram"])
	text := strings.Repeat("The quick brown fox, 12 of them: jumps(over) lazy dogs.\n", 300)
	encode(t, tok, text)
	if n := testing.AllocsPerRun(20, func() { encode(t, tok, text) }); n > 40 && !raceBuild { // 3,000 words
		t.Errorf("%v allocations", n)
	}
}

// TestTK61: one piece of 128 kB, of the kinds that BPE is worst at, has the ids that
// a cut of the same text cannot change. That it takes near linear time is a row of
// make bench-tokenizer.
func TestTK61(t *testing.T) {
	w := newWriter(61)
	long := raceSome(128 << 10)
	random := make([]byte, long)
	for i := range random {
		random[i] = 'a' + byte(w.IntN(26))
	}
	for _, name := range names() {
		tok := load(t, name)
		o := newOracle(t, name)
		texts := []string{strings.Repeat("a", 8<<10), strings.Repeat(" ", 8<<10), strings.Repeat("=", 8<<10), strings.Repeat("\n", 8<<10), string(random[:8<<10]), strings.Repeat("的", 3000)}
		for i, want := range o.encode(t, texts, false) {
			if got := encode(t, tok, texts[i]); !slices.Equal(got, want) {
				t.Errorf("%s, text %d: %s", name, i, difference(got, want))
			}
		}
		for _, s := range []string{strings.Repeat("a", long), strings.Repeat(" ", long), string(random), strings.Repeat("的", long/3)} {
			if len(encode(t, tok, s)) == 0 {
				t.Error(name)
			}
		}
	}
}

// TestTooLong: the text is never written, so that the gigabyte takes neither time nor memory.
func TestTooLong(t *testing.T) {
	tok := load(t, "deepseek_v4")
	text := make([]byte, native.MaxText+1)
	if _, err := tok.Encode(unsafe.String(&text[0], len(text)), false); !errors.Is(err, native.ErrLong) {
		t.Error(err)
	}
}

// FuzzLoadHuggingFace: whatever the bytes, loading gives an error or a tokenizer
// that encodes. So do the three below.
func FuzzLoadHuggingFace(f *testing.F) {
	for _, s := range slices.Concat(loadable(), refused()) {
		f.Add([]byte(s))
	}
	for _, name := range []string{"added tokens", "metaspace first"} { // all bytes: the fast tables
		f.Add(marshal(f, components()[name]))
	}
	f.Add(marshal(f, object{"pre_tokenizer": object{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true}, "model": byteModel()}))
	f.Fuzz(func(t *testing.T, b []byte) { use(t, b, native.LoadHuggingFace) })
}

func FuzzLoadTiktoken(f *testing.F) {
	f.Add([]byte("IQ== 0\nIg== 1\n"))
	f.Add(unpack(f, vocabularies["cl100k"].file)[:8000])
	f.Fuzz(func(t *testing.T, b []byte) {
		use(t, b, func(b []byte) (*native.Tokenizer, error) {
			return native.LoadTiktoken(b, native.RankOptions{Pattern: "o200k"})
		})
	})
}

func FuzzLoadTekken(f *testing.F) {
	f.Add([]byte(`{"config":{"pattern":"\\s+|\\S+","default_vocab_size":257,"default_num_special_tokens":1},"vocab":[{"rank":0,"token_bytes":"AA==","token_str":null}]}`))
	f.Fuzz(func(t *testing.T, b []byte) { use(t, b, native.LoadTekken) })
}

func FuzzLoadSentencePiece(f *testing.F) {
	f.Add(unpack(f, vocabularies["mistral_v3"].file)[:4000])
	for _, kind := range []uint64{1, 3, 4} { // of each type but BPE one that can be loaded
		b := small(kind)
		if _, err := native.LoadSentencePiece(b); err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) { use(t, b, native.LoadSentencePiece) })
}

func use(t *testing.T, b []byte, load func([]byte) (*native.Tokenizer, error)) {
	tok, err := load(b)
	if (tok == nil) == (err == nil) {
		t.Fatalf("%v and %v", tok, err)
	}
	if err == nil {
		if _, err := tok.Encode("The <a> 中文 é\u0301 'sk 12\n", true); err != nil {
			t.Log(err)
		}
	}
}
