package native_test

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/eppctl/eppctl/internal/core/tokenizer/native"
)

type object = map[string]any

// written is a byte in the alphabet of byte-level vocabularies.
func written(b byte) string {
	if b >= '!' && b <= '~' || b >= 0xA1 && b <= 0xAC || b >= 0xAE {
		return string(rune(b))
	}
	n := rune(0x100)
	for c := range b {
		if !(c >= '!' && c <= '~' || c >= 0xA1 && c <= 0xAC || c >= 0xAE) {
			n++
		}
	}
	return string(n)
}

// words are what the synthetic vocabularies know as entries.
var words = []string{"the", "ing", "er", "or", "in", "an", "un", "Hello", "world", "  ", "\n\n", "中国", "ção", "été", "12", "==", "x y"}

// byteModel is a small byte-level BPE.
func byteModel() object {
	vocab, merges := object{}, [][2]string{}
	for b := range 256 {
		vocab[written(byte(b))] = len(vocab)
	}
	grow := func(text string) {
		sofar := ""
		for i, b := range []byte(text) {
			part := written(b)
			if i > 0 {
				if _, ok := vocab[sofar+part]; !ok {
					vocab[sofar+part] = len(vocab)
					merges = append(merges, [2]string{sofar, part})
				}
			}
			sofar += part
		}
	}
	for _, w := range words {
		grow(w)
		grow(" " + w)
	}
	return object{"type": "BPE", "vocab": vocab, "merges": merges}
}

// charModel is a small BPE of characters with the mark of blanks, with byte tokens or
// without.
func charModel(fallback bool) object {
	vocab, merges := object{"<unk>": 0}, []string{}
	if fallback {
		for b := range 256 {
			vocab["<0x"+strings.ToUpper(hexByte(byte(b)))+">"] = len(vocab)
		}
	}
	grow := func(text string) {
		sofar := ""
		for i, r := range strings.ReplaceAll(text, " ", "▁") {
			c := string(r)
			if _, ok := vocab[c]; !ok {
				vocab[c] = len(vocab)
			}
			if i > 0 {
				if _, ok := vocab[sofar+c]; !ok {
					vocab[sofar+c] = len(vocab)
					merges = append(merges, sofar+" "+c)
				}
			}
			sofar += c
		}
	}
	for _, w := range words {
		grow(w)
		grow(" " + w)
	}
	return object{"type": "BPE", "vocab": vocab, "merges": merges, "unk_token": "<unk>", "fuse_unk": true, "byte_fallback": fallback}
}

// unmarked is charModel without the mark of blanks, alone or in an entry.
func unmarked() object {
	model := charModel(true)
	vocab := model["vocab"].(object)
	maps.DeleteFunc(vocab, func(text string, _ any) bool { return strings.Contains(text, "▁") })
	for i, text := range slices.Sorted(maps.Keys(vocab)) { // without gaps
		vocab[text] = i
	}
	model["merges"] = slices.DeleteFunc(model["merges"].([]string), func(m string) bool { return strings.Contains(m, "▁") })
	return model
}

func hexByte(b byte) string {
	const digits = "0123456789abcdef"
	return string([]byte{digits[b>>4], digits[b&15]})
}

func unigramModel(fallback bool) object {
	list := [][]any{{"<unk>", 0.0}}
	seen := map[string]bool{}
	add := func(text string, score float64) {
		if !seen[text] {
			seen[text] = true
			list = append(list, []any{text, score})
		}
	}
	if fallback {
		for b := range 256 {
			add("<0x"+strings.ToUpper(hexByte(byte(b)))+">", 0)
		}
	}
	for i, w := range words {
		w = strings.ReplaceAll(w, " ", "▁")
		add(w, -4-float64(i)*0.37)
		add("▁"+w, -3.5-float64(i)*0.29)
		for k, r := range w {
			add(string(r), -8-float64(i+k)*0.11)
			add(w[:k+utf8.RuneLen(r)], -6.2-float64(i)*0.17)
		}
	}
	add("▁", -5.1)
	return object{"type": "Unigram", "vocab": list, "unk_id": 0, "byte_fallback": fallback}
}

// wordPieceModel knows the words, their ends inside others, and most single letters.
func wordPieceModel(prefix string) object {
	vocab := object{}
	add := func(text string) {
		if _, ok := vocab[text]; !ok {
			vocab[text] = len(vocab)
		}
	}
	for _, w := range append([]string{"[UNK]", "[CLS]", prefix, prefix + prefix}, words...) {
		add(w)
		for k, r := range w {
			add(w[:k+utf8.RuneLen(r)])
			add(prefix + w[k:])
		}
	}
	for _, r := range "abcdefghijklmnopqrtuvwxyz0123456789.,'-#的一ée\u0301 " {
		add(string(r))
		if r != 'q' {
			add(prefix + string(r))
		}
	}
	return object{"type": "WordPiece", "vocab": vocab, "unk_token": "[UNK]", "continuing_subword_prefix": prefix, "max_input_chars_per_word": 20}
}

func added(content string, flags ...string) object {
	o := object{"content": content, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}
	for _, f := range flags {
		o[f] = true
	}
	return o
}

func sequence(kind string, list ...any) object {
	return object{"type": "Sequence", kind: list}
}

func splitOn(pattern object, behavior string, invert bool) object {
	return object{"type": "Split", "pattern": pattern, "behavior": behavior, "invert": invert}
}

var byteLevel = object{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}

// give numbers added tokens as the engines would: by the entry's id, or the next one
// free.
func give(model object, list ...object) []object {
	known := func(text string) (int, bool) {
		if vocab, ok := model["vocab"].(object); ok {
			id, ok := vocab[text].(int)
			return id, ok
		}
		id := slices.IndexFunc(model["vocab"].([][]any), func(e []any) bool { return e[0] == text })
		return id, id >= 0
	}
	next := reflect.ValueOf(model["vocab"]).Len()
	for _, a := range list {
		id, ok := known(a["content"].(string))
		if !ok {
			id = next
			next++
		}
		a["id"] = id
	}
	return list
}

// components are files that use what the real vocabularies of the tests do not.
func components() map[string]object {
	bytes := func(parts ...any) object { return sequence("pretokenizers", append(parts, byteLevel)...) }
	regex := func(s string) object { return object{"Regex": s} }
	text := func(s string) object { return object{"String": s} }
	pair := func(model object) []object { return give(model, added("<a>"), added("<a><b>")) }
	flags := func(model object) []object {
		return give(model,
			added("<mask>", "lstrip"), added("<sep>", "rstrip"), added("<both>", "lstrip", "rstrip"),
			added("word", "single_word"), added("Norm", "normalized"), added("Étude", "normalized"),
			added("<a>"), added("<a><b>"), added("x", "single_word", "normalized"), added("<s p>", "normalized", "rstrip"))
	}
	out := map[string]object{
		"added tokens":                {"added_tokens": flags(byteModel()), "pre_tokenizer": bytes(), "model": byteModel()},
		"added tokens, NFC":           {"added_tokens": flags(byteModel()), "normalizer": object{"type": "NFC"}, "pre_tokenizer": bytes(), "model": byteModel()},
		"added tokens, blanks":        {"added_tokens": flags(charModel(true)), "normalizer": sequence("normalizers", object{"type": "Prepend", "prepend": "▁"}, object{"type": "Replace", "pattern": text(" "), "content": "▁"}), "model": charModel(true)},
		"GPT-2 by ByteLevel":          {"pre_tokenizer": object{"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true}, "model": byteModel()},
		"digits":                      {"pre_tokenizer": bytes(object{"type": "Digits", "individual_digits": true}), "model": byteModel()},
		"digits together":             {"pre_tokenizer": bytes(object{"type": "Digits", "individual_digits": false}), "model": byteModel()},
		"unknown pattern":             {"pre_tokenizer": bytes(splitOn(regex(`\p{Lu}?[^\s\p{Lu}\p{N}]+|\p{N}{2}|\s`), "Isolated", false)), "model": byteModel()},
		"pattern of Phi-4":            {"pre_tokenizer": bytes(splitOn(regex(`'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+`), "Removed", true)), "model": byteModel()},
		"pattern of tiktoken":         {"pre_tokenizer": bytes(splitOn(regex(`'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s`), "Isolated", false)), "model": byteModel()},
		"pattern of BLOOM":            {"pre_tokenizer": bytes(splitOn(regex(` ?[^(\s|[.,!?…。，、।۔،])]+`), "Isolated", false)), "model": byteModel()},
		"pattern of lines":            {"pre_tokenizer": bytes(splitOn(regex(`\s+$|^[a-z]|^ |\A.|(?:x|\p{Lu}.)++.|(\p{L}[[aeiou]\d])*+a|e\z|=$`), "Isolated", false)), "model": byteModel()},
		"caseless bracket":            {"pre_tokenizer": bytes(splitOn(regex(`'(?i:[sk])|[^']`), "Isolated", false)), "model": byteModel()},
		"caseless pattern":            {"pre_tokenizer": bytes(splitOn(regex(`(?i:'sk|'d)|[^']`), "Isolated", false)), "model": byteModel()},
		"ignore_merges":               {"pre_tokenizer": bytes(splitOn(regex(`\s+|\S+`), "Isolated", false)), "model": with(byteModel(), "ignore_merges", true)},
		"missing bytes, unk":          {"pre_tokenizer": bytes(), "model": with(without(byteModel(), "e", "ÿ", "Ġ"), "unk_token", "o")},
		"missing bytes, fused":        {"pre_tokenizer": bytes(), "model": with(with(without(byteModel(), "e", "t"), "unk_token", "o"), "fuse_unk", true)},
		"missing bytes, dropped":      {"pre_tokenizer": bytes(), "model": without(byteModel(), "e", "t", "Ġ")},
		"characters":                  {"model": charModel(false)},
		"characters and bytes":        {"model": charModel(true)},
		"metaspace always":            {"pre_tokenizer": object{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true}, "model": charModel(true)},
		"metaspace first":             {"added_tokens": pair(charModel(true)), "pre_tokenizer": object{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": false}, "model": charModel(true)},
		"metaspace never":             {"added_tokens": flags(charModel(true))[:4], "pre_tokenizer": object{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never", "split": false}, "model": charModel(true)},
		"metaspace always, one piece": {"added_tokens": pair(charModel(true)), "pre_tokenizer": object{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": false}, "model": charModel(true)},
		"metaspace, no mark":          {"pre_tokenizer": object{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true}, "model": unmarked()},
		"unigram":                     {"pre_tokenizer": object{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true}, "model": unigramModel(false)},
		"unigram with bytes":          {"pre_tokenizer": object{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": true}, "model": unigramModel(true)},
		"WordPiece, BERT":             {"added_tokens": flags(wordPieceModel("##")), "normalizer": bert(true, true, nil, true), "pre_tokenizer": object{"type": "BertPreTokenizer"}, "model": wordPieceModel("##")},
		"WordPiece, white space":      {"pre_tokenizer": object{"type": "WhitespaceSplit"}, "model": wordPieceModel("#")},
		"WordPiece, no prefix":        {"pre_tokenizer": object{"type": "Whitespace"}, "model": wordPieceModel("")},
		"WordPiece, one piece":        {"model": with(wordPieceModel("##"), "max_input_chars_per_word", 0)},
		"WordLevel":                   {"pre_tokenizer": object{"type": "Whitespace"}, "model": object{"type": "WordLevel", "vocab": wordPieceModel("##")["vocab"], "unk_token": "e"}},
		"white space dropped":         {"pre_tokenizer": bytes(object{"type": "WhitespaceSplit"}), "model": byteModel()},
		"replace by a pattern":        {"normalizer": object{"type": "Replace", "pattern": regex(`\s{2,}|[aeiou]x`), "content": " "}, "pre_tokenizer": bytes(), "model": byteModel()},
		"strip":                       {"normalizer": object{"type": "Strip", "strip_left": true, "strip_right": true}, "pre_tokenizer": bytes(), "model": byteModel()},
	}
	for _, form := range []string{"NFD", "NFKC", "NFKD"} {
		out[form] = object{"normalizer": object{"type": form}, "pre_tokenizer": bytes(), "model": byteModel()}
	}
	for _, b := range []string{"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"} {
		out["split "+b] = object{"pre_tokenizer": bytes(splitOn(regex(`[aeiou]`), b, false)), "model": byteModel()}
		out["split "+b+" inverted"] = object{"pre_tokenizer": bytes(splitOn(text("e"), b, true)), "model": byteModel()}
	}
	return out
}

func with(model object, name string, v any) object {
	model[name] = v
	return model
}

// without takes entries out of a vocabulary, with the merges they are in.
func without(model object, entries ...string) object {
	vocab := model["vocab"].(object)
	for text := range vocab {
		if slices.ContainsFunc(entries, func(e string) bool { return strings.Contains(text, e) }) {
			delete(vocab, text)
		}
	}
	model["merges"] = slices.DeleteFunc(model["merges"].([][2]string), func(m [2]string) bool {
		_, ok := vocab[m[0]+m[1]]
		return !ok
	})
	return model
}

func marshal(t testing.TB, o object) []byte {
	t.Helper()
	full := object{"version": "1.0", "truncation": nil, "padding": nil, "added_tokens": []object{}, "normalizer": nil, "pre_tokenizer": nil, "post_processor": nil, "decoder": nil}
	for k, v := range o {
		full[k] = v
	}
	b, err := json.Marshal(full)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func loadObject(t testing.TB, o object) *native.Tokenizer {
	t.Helper()
	tok, err := native.LoadHuggingFace(marshal(t, o))
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// TestComponents holds every element that the loader knows against Hugging Face
// tokenizers, on synthetic files: TK-10 (an unknown pattern), TK-12 (the flags of added
// tokens), TK-13 (one a prefix of the other), and the normalisers over every
// character.
func TestComponents(t *testing.T) {
	extra := []string{"<mask>", " <mask> ", "\t<sep>  ", "<both>\n", "word", "words", " word.", "Norm", "norm", "E\u0301tude", "étude", "Étude", "<a>", "<a><b>", "<a><b", "x", " x ", "xx", "<s p> ", "ax  ", "'SK", "'ſK", "'\u212a"}
	for name, o := range components() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var texts []string
			w := newWriter(12)
			for range raceSome(600) {
				s := w.text(1 + w.IntN(60))
				for range w.IntN(4) {
					s += extra[w.IntN(len(extra))] + w.text(1+w.IntN(8))
				}
				texts = append(texts, s)
			}
			if strings.HasPrefix(name, "NF") {
				every(contexts[1], func(s string) { texts = append(texts, s) })
			}
			compareObject(t, o, texts)
		})
	}
}

// compareObject holds the ids of a file against those of Hugging Face tokenizers.
func compareObject(t *testing.T, o object, texts []string) {
	t.Helper()
	tok := loadObject(t, o)
	file := filepath.Join(t.TempDir(), "tokenizer.json")
	if err := os.WriteFile(file, marshal(t, o), 0o600); err != nil {
		t.Fatal(err)
	}
	compare(t, tok, newOracleOf(t, "hf", file), texts)
}

// compare holds a tokenizer's ids against the engines' own library's: of all texts, and
// of some with what is put around a text.
func compare(t *testing.T, tok *native.Tokenizer, o *oracle, texts []string) {
	t.Helper()
	o.compare(t, tok, texts, false)
	if o.around {
		o.compare(t, tok, texts[:min(len(texts), batchSize)], true)
	}
}

// TestTK09: what a file asks for and the loader does not know is refused by name.
func TestTK09(t *testing.T) {
	model := byteModel
	begun := object{"type": "TemplateProcessing", "single": []any{object{"SpecialToken": object{"id": "a", "type_id": 0}}, object{"Sequence": object{"id": "A", "type_id": 0}}}, "pair": []any{},
		"special_tokens": object{"a": object{"id": "a", "ids": []int{64}, "tokens": []string{"a"}}}}
	closed := object{"type": "BertProcessing", "sep": []any{"a", 64}, "cls": []any{"a", 64}}
	for _, c := range []struct {
		name string
		file object
	}{
		{"Precompiled", object{"normalizer": object{"type": "Precompiled", "precompiled_charsmap": ""}, "model": model()}},
		{"nothing to prepend", object{"normalizer": object{"type": "Prepend", "prepend": ""}, "model": model()}},
		{"Uppercase", object{"normalizer": object{"type": "Uppercase"}, "model": model()}},
		{"added token", object{"added_tokens": []object{with(added("<a>"), "id", 7)}, "pre_tokenizer": byteLevel, "model": model()}},
		{"BertNormalizer", object{"normalizer": sequence("normalizers", object{"type": "BertNormalizer"}), "model": model()}},
		{"UnicodeScripts", object{"pre_tokenizer": object{"type": "UnicodeScripts", "version": 17}, "model": model()}},
		{"Language", object{"pre_tokenizer": object{"type": "Language"}, "model": model()}},
		{"Punctuation", object{"pre_tokenizer": sequence("pretokenizers", object{"type": "Punctuation", "behavior": "Sideways"}), "model": model()}},
		{"FixedLength", object{"pre_tokenizer": object{"type": "FixedLength", "length": 0}, "model": model()}},
		{"CharDelimiterSplit", object{"pre_tokenizer": object{"type": "CharDelimiterSplit", "delimiter": "ab"}, "model": model()}},
		{"flavour", object{"pre_tokenizer": object{"type": "ByteLevel", "flavour": 1}, "model": model()}},
		{"Sideways", object{"pre_tokenizer": splitOn(object{"String": "a"}, "Sideways", false), "model": model()}},
		{"hyphen beside a class", object{"pre_tokenizer": splitOn(object{"Regex": "[a-[b]]"}, "Isolated", false), "model": model()}},
		{"behind ByteLevel", object{"pre_tokenizer": sequence("pretokenizers", byteLevel, byteLevel), "model": model()}},
		{"unk_token", object{"model": with(wordPieceModel("##"), "unk_token", "<nowhere>")}},
		{"unk_token", object{"model": object{"type": "WordLevel", "vocab": object{"a": 0}}}},
		{"max_input_chars_per_word", object{"model": object{"type": "WordPiece", "vocab": object{"a": 0}, "unk_token": "a"}}},
		{"words of 5000 characters", object{"model": with(wordPieceModel("##"), "max_input_chars_per_word", 5000)}},
		{"WordPiece with ByteLevel", object{"pre_tokenizer": byteLevel, "model": wordPieceModel("##")}},
		{"WordSalad", object{"model": object{"type": "WordSalad", "vocab": object{}}}},
		{"continuing_subword_prefix", object{"model": with(model(), "continuing_subword_prefix", "##")}},
		{"dropout", object{"model": with(model(), "dropout", 0.1)}},
		{"end_of_word_suffix", object{"model": with(model(), "end_of_word_suffix", "</w>")}},
		{"new_feature", object{"model": with(model(), "new_feature", true)}},
		{"new_member", object{"new_member": 1, "model": model()}},
		{"ChatProcessing", object{"post_processor": object{"type": "ChatProcessing"}, "model": model()}},
		{"behind TemplateProcessing", object{"post_processor": sequence("processors", begun, kind("ByteLevel"), closed), "model": model()}},
		{"behind TemplateProcessing", object{"post_processor": sequence("processors", sequence("processors", begun), sequence("processors", kind("ByteLevel"), begun)), "model": model()}},
		{"is nothing once normalised", object{"normalizer": object{"type": "Strip", "strip_left": true, "strip_right": false}, "added_tokens": give(model(), added("\n", "normalized")), "model": model()}},
		{"unk_token", object{"model": with(model(), "unk_token", "<nowhere>"), "pre_tokenizer": byteLevel}},
		{"byte_fallback with ByteLevel", object{"model": with(without(byteModel(), "e"), "byte_fallback", true), "pre_tokenizer": byteLevel}},
		{"unk_id", object{"model": with(unigramModel(false), "unk_id", nil)}},
	} {
		_, err := native.LoadHuggingFace(marshal(t, c.file))
		if err == nil || !strings.Contains(err.Error(), c.name) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	_, err := native.LoadTiktoken([]byte("IQ== 0\n"), native.RankOptions{Pattern: "[a--b]"})
	if !errors.Is(err, native.ErrUnsupported) {
		t.Error(err)
	}
}

// TestEveryType: the loader knows each type of component that Hugging Face tokenizers
// has. Here they lack their members, of which they may complain.
func TestEveryType(t *testing.T) {
	out, err := exec.Command("python3", "testdata/oracle.py", "types").Output()
	var all map[string][]string
	if err == nil {
		err = json.Unmarshal(out, &all)
	}
	if err != nil {
		t.Fatalf("%v (is PYTHONPATH set to what scripts/tokenizers.sh prints?)", err)
	}
	for part, least := range map[string]int{"normalizer": 14, "pre_tokenizer": 12, "post_processor": 5, "model": 4} {
		if len(all[part]) < least {
			t.Errorf("%s: only %v", part, all[part])
		}
		for _, name := range append(all[part], "Unheard") {
			o := object{"model": byteModel()}
			o[part] = object{"type": name}
			_, err := native.LoadHuggingFace(marshal(t, o))
			unknown := err != nil && (strings.HasSuffix(err.Error(), name+": not supported") || strings.HasSuffix(err.Error(), `"`+name+`": not supported`))
			if unknown != (name == "Unheard") {
				t.Errorf("%s %s: %v", part, name, err)
			}
		}
	}
}

// TestTK10: an unknown pattern goes through the regular expression, and is said to.
func TestTK10(t *testing.T) {
	if got := loadObject(t, components()["unknown pattern"]).Info(); got.Split != "regex" || !got.Tables {
		t.Errorf("%+v", got)
	}
	if got := load(t, "qwen3").Info(); got.Split != "cl100k/1" || !got.Tables || got.SHA256 != "aeb13307a71acd8fe81861d94ad54ab689df773318809eed3cbe794b4492dae4" {
		t.Errorf("%+v", got)
	}
}

// TestTK22: a vocabulary with a blank behind a letter has no cut there.
func TestTK22(t *testing.T) {
	tok := loadObject(t, components()["metaspace never"])
	if n := len(tok.CutsOf("x y x y")); n != 0 {
		t.Errorf("%d cuts", n)
	}
	tok = loadObject(t, components()["metaspace first"])
	for _, c := range tok.CutsOf("in x y the world") {
		if c.At == 4 {
			t.Error("cut inside an entry")
		}
	}
}
