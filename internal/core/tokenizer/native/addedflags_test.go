package native_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestAddedTokenFlags holds random sets of added tokens, that strip, look at their
// neighbours, share text, or are white space themselves, against Hugging Face tokenizers.
func TestAddedTokenFlags(t *testing.T) {
	contents := []string{"<a>", "<a><b>", "<b>", "b><", "  ", "\n", "\t\n", "word", "or", " word", "É", "x"}
	between := []string{"", "", " ", "  ", "\n", " \n\t", "e", "E", "the ", "wor", "\u00a0"}
	normalizers := []any{nil, object{"type": "Sequence", "normalizers": []any{}}, object{"type": "NFC"}, object{"type": "Lowercase"}}
	r := rand.New(rand.NewPCG(6, 12))
	for i := range 24 {
		model := byteModel()
		var tokens []object
		for _, k := range r.Perm(len(contents))[:2+r.IntN(5)] {
			o := added(contents[k])
			for _, f := range []string{"lstrip", "rstrip", "single_word", "normalized"} {
				o[f] = r.IntN(3) == 0
			}
			if blank := contents[k][0] <= ' ' && contents[k] != " word"; blank && o["rstrip"] == false {
				o["lstrip"] = false // the library panics where a token before has taken more than this one
			}
			tokens = append(tokens, o)
		}
		var texts []string
		for range 300 {
			s := between[r.IntN(len(between))]
			for range 1 + r.IntN(6) {
				s += contents[r.IntN(len(contents))] + between[r.IntN(len(between))]
			}
			texts = append(texts, s)
		}
		file := object{"added_tokens": give(model, tokens...), "normalizer": normalizers[i%len(normalizers)], "pre_tokenizer": byteLevel, "model": model}
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			compareObject(t, file, texts)
			if t.Failed() {
				t.Log(file["normalizer"], tokens)
			}
		})
	}
}
