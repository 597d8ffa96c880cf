package native_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/core/tokenizer/native"
)

// userPieces are pieces of the user that overlap others, hold blanks and are changed by
// normalisers. Of QWER there are two ways with nothing else, one of them with more of
// them.
var userPieces = []string{"[a]", "\ufb01", "fi", "x", "a\u3000b", "the world", "\u2581in", "o", "ing!", "  ", "Q", "W", "R", "QWE", "ER"}

// TestSentencePieceUnigram holds models of type Unigram against SentencePiece: every
// setting of the normaliser and the trainer that changes ids, over every character and
// random text. The models are trained by testdata/train.py, each time anew: there is
// none of an open licence among the vocabularies.
func TestSentencePieceUnigram(t *testing.T) {
	const dummy, extra, escape = 3, 4, 5
	for name, c := range map[string]spCase{
		"nmt_nfkc":               {},
		"with bytes":             {options: object{"byte_fallback": true, "vocab_size": 420}},
		"identity":               {options: object{"normalization_rule_name": "identity"}, fields: [][2]uint64{{extra, 0}}},
		"nmt_nfkc_cf":            {options: object{"normalization_rule_name": "nmt_nfkc_cf"}},
		"blanks kept":            {fields: [][2]uint64{{extra, 0}}},
		"no prefix":              {fields: [][2]uint64{{dummy, 0}}},
		"blanks not escaped":     {fields: [][2]uint64{{escape, 0}}},
		"blanks as suffix":       {options: object{"treat_whitespace_as_suffix": true}},
		"suffix, blanks kept":    {options: object{"treat_whitespace_as_suffix": true}, fields: [][2]uint64{{extra, 0}}},
		"over blanks":            {options: object{"split_by_whitespace": false, "max_sentencepiece_length": 12, "vocab_size": 260}},
		"pieces of the user":     {options: object{"user_defined_symbols": userPieces}},
		"pieces, blanks kept":    {options: object{"user_defined_symbols": userPieces, "byte_fallback": true, "vocab_size": 440}, fields: [][2]uint64{{extra, 0}}},
		"pieces, control pieces": {options: object{"user_defined_symbols": userPieces, "control_symbols": []string{"[c]", "c"}, "normalization_rule_name": "identity"}},
		"unused pieces":          {unused: []string{"the wor", "\u2581in the", "Q", "é\u0301"}},
	} {
		t.Run(name, func(t *testing.T) { c.compare(t, "unigram") })
	}
}

// TestSentencePieceLookup: the two types that look up what they find.
func TestSentencePieceLookup(t *testing.T) {
	for name, c := range map[string]spCase{
		"char":                   {},
		"char, with bytes":       {options: object{"byte_fallback": true, "vocab_size": 420}},
		"char, pieces":           {options: object{"user_defined_symbols": userPieces, "control_symbols": []string{"[c]", "c"}}},
		"char, as suffix":        {options: object{"treat_whitespace_as_suffix": true}},
		"word":                   {options: object{"vocab_size": 60}},
		"word, with bytes":       {options: object{"byte_fallback": true, "vocab_size": 330}},
		"word, pieces":           {options: object{"user_defined_symbols": userPieces, "control_symbols": []string{"[c]", "▁c"}, "vocab_size": 75}},
		"word, not escaped":      {options: object{"vocab_size": 60}, fields: [][2]uint64{{5, 0}}},
		"word, no prefix, bytes": {options: object{"byte_fallback": true, "vocab_size": 330, "control_symbols": []string{"[c]", "c"}}, fields: [][2]uint64{{3, 0}, {4, 0}}},
		"word, no prefix":        {options: object{"vocab_size": 60}, fields: [][2]uint64{{3, 0}, {4, 0}}},
	} {
		t.Run(name, func(t *testing.T) { c.compare(t, name[:4]) })
	}
}

// spCase is a model to train.
type spCase struct {
	options object
	fields  [][2]uint64
	unused  []string // pieces of type UNUSED to add
}

func (c spCase) compare(t *testing.T, kind string) {
	t.Parallel()
	options := object{"model_type": kind}
	for k, v := range c.options {
		options[k] = v
	}
	file, b := trained(t, options, c.fields...)
	for _, text := range c.unused {
		b = appendPiece(b, text, 5)
	}
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	tok, err := native.LoadSentencePiece(b)
	if err != nil {
		t.Fatal(err)
	}
	texts := spTexts()
	if c.options == nil && c.fields == nil { // the normalisers have a test of their own
		texts = append(texts, everyIn(normalizerContexts)...)
	}
	compare(t, tok, newOracleOf(t, "spm", file), texts)
}

// spTexts are random texts with names of pieces in them, blanks of all kinds at both
// ends, and texts in which the sum of many scores loses digits.
func spTexts() []string {
	texts := append(randomTexts(500), beginnings...)
	for _, s := range beginnings {
		texts = append(texts, s+" ", s+"\u2581", s+" \u2581 ", "  "+s+"  a", s+"[a]", "[a] "+s, s+"\u3000\u00a0")
	}
	names := slices.Concat(userPieces, []string{"[c]", "c", "<s>", "</s>", "<unk>", "<0x41>", "▁", " ", "fin", "othing", "the", " world", "in", "ing", "QWER"})
	w := newWriter(77)
	for range 800 {
		var b strings.Builder
		for range 1 + w.IntN(12) {
			b.WriteString(names[w.IntN(len(names))])
		}
		texts = append(texts, b.String())
	}
	for range 2 {
		var b strings.Builder
		for b.Len() < 100_000 {
			b.WriteString([]string{"the ", "world", " nothing", "in", "g", "or ", "2345", "quick brown", " fox", "é"}[w.IntN(10)])
		}
		texts = append(texts, b.String())
	}
	return texts
}
