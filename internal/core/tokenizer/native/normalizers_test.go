package native_test

import (
	"encoding/base64"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// charsMap is SentencePiece's own for a normalisation rule.
func charsMap(t testing.TB, rule string) []byte {
	t.Helper()
	cmd := exec.Command("python3", "testdata/train.py", "charsmap", rule)
	out, err := cmd.Output()
	if err != nil || len(out) < 100_000 {
		t.Fatalf("%d bytes, %v (is PYTHONPATH set to what scripts/tokenizers.sh prints?)", len(out), err)
	}
	return out
}

func precompiled(b []byte) object {
	return object{"type": "Precompiled", "precompiled_charsmap": base64.StdEncoding.EncodeToString(b)}
}

func bert(clean, chinese bool, accents any, lower bool) object {
	return object{"type": "BertNormalizer", "clean_text": clean, "handle_chinese_chars": chinese, "strip_accents": accents, "lowercase": lower}
}

func replaced(pattern object, by string) object {
	return object{"type": "Replace", "pattern": pattern, "content": by}
}

func meta(scheme string, split bool) object {
	return object{"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": split}
}

func kind(name string) object { return object{"type": name} }

// normalizations are the normalisers alone and as real models put them together:
// T5 and its kin, ALBERT, XLM-RoBERTa, BERT.
func normalizations(t testing.TB) map[string]object {
	nfkc, folded := precompiled(charsMap(t, "nmt_nfkc")), precompiled(charsMap(t, "nmt_nfkc_cf"))
	runs := replaced(object{"Regex": " {2,}"}, "▁")
	return map[string]object{
		"NFC": kind("NFC"), "NFD": kind("NFD"), "NFKC": kind("NFKC"), "NFKD": kind("NFKD"),
		"Lowercase": kind("Lowercase"), "StripAccents": kind("StripAccents"), "Nmt": kind("Nmt"),
		"NFD, StripAccents":       sequence("normalizers", kind("NFD"), kind("StripAccents")),
		"ByteLevel":               kind("ByteLevel"),
		"Strip left":              object{"type": "Strip", "strip_left": true, "strip_right": false},
		"Strip right":             object{"type": "Strip", "strip_left": false, "strip_right": true},
		"Prepend":                 object{"type": "Prepend", "prepend": "a b"},
		"Replace":                 replaced(object{"String": "e"}, "a bc"),
		"Replace by nothing":      replaced(object{"String": "th"}, ""),
		"Replace a pattern":       replaced(object{"Regex": `\s+|[aeiou]x?`}, "uu u"),
		"BertNormalizer":          bert(true, true, nil, true),
		"BertNormalizer, raw":     bert(false, false, false, false),
		"BertNormalizer, accents": bert(false, true, true, false),
		"BertNormalizer, cased":   bert(true, true, nil, false),
		"BertNormalizer, clean":   bert(true, false, false, true),
		"Precompiled":             nfkc,
		"Precompiled, folded":     folded,
		"T5":                      sequence("normalizers", nfkc, object{"type": "Strip", "strip_left": false, "strip_right": true}, runs),
		"ALBERT": sequence("normalizers", replaced(object{"String": "``"}, "\""), replaced(object{"String": "''"}, "\""),
			kind("NFKD"), kind("StripAccents"), kind("Lowercase"), folded, runs),
	}
}

// pretokenizations are the steps that are not in components.
func pretokenizations() map[string]object {
	behaviors := []string{"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"}
	out := map[string]object{
		"Whitespace":          kind("Whitespace"),
		"UnicodeScripts":      kind("UnicodeScripts"),
		"UnicodeScripts, cut": sequence("pretokenizers", kind("WhitespaceSplit"), kind("UnicodeScripts")),
		"WhitespaceSplit":     kind("WhitespaceSplit"),
		"BertPreTokenizer":    kind("BertPreTokenizer"),
		"Punctuation":         kind("Punctuation"),
		"Digits":              object{"type": "Digits", "individual_digits": true},
		"Digits, together":    object{"type": "Digits", "individual_digits": false},
		"CharDelimiterSplit":  object{"type": "CharDelimiterSplit", "delimiter": "é"},
		"FixedLength":         object{"type": "FixedLength", "length": 3},
	}
	for _, b := range behaviors {
		out["Punctuation "+b] = object{"type": "Punctuation", "behavior": b}
		out["Split between "+b] = splitOn(object{"Regex": `(?=\p{Lu})|\p{N}*`}, b, false)
		out["Split between, inverted "+b] = splitOn(object{"Regex": `(?<=e)|(?=[0-9])`}, b, true)
	}
	return out
}

// beginnings are starts of texts that normalisers drop, widen, narrow and reorder.
var beginnings = []string{
	"", " ", "  ", "\t", "\x00", "\x01", "\x01\x02", "\u200b", "\ufeff", "é", "e\u0301", "\u0301", "\u0301\u0344", "q\u0307\u0323", "é\u0323", "\u0f73", "\u0f71\u0f73",
	"한", "\u1100\u1161", "\u1100\u1161\u11a8x", "ﬁ", "½", "㌀", "ﷺ", "İ", "ẞ", "Σ", "ΑΣ", "中", "中国", "e", "ex", "the", "th", "``", "\u00a0", "\u3000", "\u2581", "▁▁", "ｅ\u0301", "Ⓐ", "\u00ad", "\u00ad\u00ad", "ｶﾞ",
	"\u0600a", "\r\n", "©\u0301", "©\u200d©\u0301", "🇫🇷\u0301", "\u0915\u094d\u0937", "\u0915\u0301", "①②", "\u09be", "A", "1", ".", ".5", "\u1E9B\u0323", "\uFB2C", "\U0001D15E",
}

// normalizerContexts put a character beside what normalisers join, cut or skip.
var normalizerContexts = []string{"a%b", "%", " %", "%\u0301", "e%", "1%.", "中%", "\u0600%", "ｅ%"}

// TestNormalizers holds every normaliser and step against Hugging Face tokenizers, over
// every character, and over random text;
// added tokens are of the normalised text.
func TestNormalizers(t *testing.T) {
	tokens := func(model object) []object {
		return give(model, added("<a>"), added("Étude", "normalized"), added("ﬁ½", "normalized"), added("Norm", "normalized", "lstrip"), added("hello world", "normalized", "rstrip"), added("x", "single_word", "normalized"))
	}
	model := byteModel()
	for name, n := range normalizations(t) {
		pre := byteLevel
		if name == "ByteLevel" {
			pre = splitOn(object{"String": "x"}, "Isolated", false)
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := byteModel()
			if name == "ByteLevel" {
				m = with(m, "unk_token", "o")
			}
			compareObject(t, object{"added_tokens": tokens(m), "normalizer": n, "pre_tokenizer": pre, "model": m}, append(randomTexts(1000), everyIn(normalizerContexts)...))
		})
	}
	shown := meta("always", false) // the start of each piece shows in the ids
	for name, p := range pretokenizations() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			texts := randomTexts(300)
			if !strings.HasPrefix(name, "Split") && p["behavior"] == nil {
				texts = append(texts, everyIn(normalizerContexts)...)
			}
			compareObject(t, object{"added_tokens": tokens(model), "pre_tokenizer": sequence("pretokenizers", p, shown, byteLevel), "model": model}, texts)
		})
	}
}

// TestUnicodeScripts: of each character of Unicode, at the start and between two scripts, where
// Hugging Face tokenizers cut and what they drop.
func TestUnicodeScripts(t *testing.T) {
	model := byteModel()
	var texts []string
	for _, c := range []string{"a%の", "%1"} {
		every(c, func(s string) { texts = append(texts, s) })
	}
	for _, s := range beginnings {
		texts = append(texts, s, " "+s+" a", s+"\u0378"+s, "\u0378"+s)
	}
	pre := sequence("pretokenizers", splitOn(object{"String": "\n"}, "Removed", false), kind("UnicodeScripts"), meta("always", false), byteLevel)
	compareObject(t, object{"pre_tokenizer": pre, "model": model}, texts)
}

// everyIn has every character but the large blocks whose members are alike (of these
// one in 128), in the first context; if TOKENIZER_FUZZ is set every one in all contexts.
func everyIn(contexts []string) (texts []string) {
	add := func(s string) { texts = append(texts, s) }
	if os.Getenv("TOKENIZER_FUZZ") == "" {
		everyOf(contexts[0], func(r rune) bool { return !alike(r) || r&0x7F == 0 }, add)
		return texts
	}
	for _, c := range contexts {
		every(c, add)
	}
	return texts
}

// alike are ideographs, Hangul syllables, hieroglyphs, Tangut, and what has no meaning.
func alike(r rune) bool {
	for _, x := range [][2]rune{{0x3400, 0x9FFF}, {0xAC00, 0xD7A3}, {0xE000, 0xF8FF}, {0x13000, 0x15FFF}, {0x17000, 0x18CFF}, {0x1B000, 0x1BBFF}, {0x20000, 0x2F7FF}, {0x2FA20, 0xDFFFF}, {0xE0200, 0x10FFFF}} {
		if r >= x[0] && r <= x[1] {
			return true
		}
	}
	return false
}

// randomTexts have a beginning, something at which tokens part, and words.
func randomTexts(n int) (texts []string) {
	w := newWriter(7)
	tokens := []string{"<a>", " <a> ", "Étude", "E\u0301tude", "étude", "ﬁ½", "fi½", " Norm", "norm", "hello  world ", "hello world", "Hello World  ", "x", " X "}
	for range raceSome(n) {
		s := beginnings[w.IntN(len(beginnings))]
		for range 1 + w.IntN(3) {
			s += beginnings[w.IntN(len(beginnings))] + w.text(1+w.IntN(12))
			if w.IntN(3) == 0 {
				s += tokens[w.IntN(len(tokens))]
			}
		}
		texts = append(texts, s)
	}
	return texts
}

// TestMetaspaceFirst: which piece has the mark put in front depends on the character
// of the text that its first one stands for, whatever a normaliser has done.
func TestMetaspaceFirst(t *testing.T) {
	texts := randomTexts(800)
	texts = append(texts, beginnings...)
	for _, b := range beginnings {
		texts = append(texts, b+"the", b+" the", b+"<a>the", b+"\u0301\u0323the", "\x01"+b+"the", " "+b)
	}
	all := normalizations(t)
	all["none"] = nil
	for name, n := range all {
		for step, p := range map[string]object{"": nil, "WhitespaceSplit": kind("WhitespaceSplit"), "Punctuation": kind("Punctuation"), "FixedLength": object{"type": "FixedLength", "length": 1}} {
			few := name == "T5" || name == "none" || name == "Replace"
			if p != nil && !few {
				continue
			}
			t.Run(strings.TrimSuffix(name+", "+step, ", "), func(t *testing.T) {
				t.Parallel()
				pre := meta("first", step == "")
				if p != nil {
					pre = sequence("pretokenizers", p, pre)
				}
				o := object{"pre_tokenizer": pre, "model": charModel(true)}
				o["added_tokens"] = give(o["model"].(object), added("<a>"), added("Norm", "normalized"))
				if n != nil {
					o["normalizer"] = n
				}
				compareObject(t, o, texts)
				if !few {
					return
				}
				o["model"] = unigramModel(true)
				o["added_tokens"] = give(o["model"].(object), added("<a>"), added("Norm", "normalized"))
				compareObject(t, o, texts)
			})
		}
	}
}
