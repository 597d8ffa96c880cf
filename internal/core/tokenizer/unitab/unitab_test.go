package unitab_test

import (
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/eppctl/eppctl/internal/core/tokenizer/unitab"
	"github.com/eppctl/eppctl/internal/testdata"
)

// TestTK02b holds the classes of every character against what the engines'
// regular expressions take for them.
func TestTK02b(t *testing.T) {
	dir := testdata.Dirs(t, "tokenizer")[0]
	var sets map[string][][2]rune
	testdata.GzipJSON(t, filepath.Join(dir, "hf_regex_classes.json.gz"), &sets)
	for name, in := range map[string]func(unitab.Class) bool{
		"L":  func(c unitab.Class) bool { return c&unitab.Letter != 0 },
		"N":  func(c unitab.Class) bool { return c&unitab.Number != 0 },
		"P":  func(c unitab.Class) bool { return c&unitab.Punct != 0 },
		"S":  func(c unitab.Class) bool { return c&unitab.Symbol != 0 },
		"M":  func(c unitab.Class) bool { return c&unitab.Mark != 0 },
		"Ll": func(c unitab.Class) bool { return c&unitab.Lower != 0 },
		"s":  func(c unitab.Class) bool { return c&unitab.Space != 0 },
	} {
		compare(t, name, sets[name], func(r rune) bool { return in(unitab.Of(r)) })
	}
	for _, pair := range [][2]string{{"Lu", "Lt"}, {"Lm", "Lo"}} {
		want := append(sets[pair[0]], sets[pair[1]]...)
		class := unitab.Upper
		if pair[0] == "Lm" {
			class = unitab.Caseless
		}
		compare(t, pair[0]+pair[1], want, func(r rune) bool { return unitab.Of(r)&class != 0 })
	}
	for name, want := range sets {
		if name == "s" {
			name = "White_Space"
		}
		ranges, ok := unitab.Property(name)
		if !ok {
			t.Errorf("no category %s", name)
		}
		set := make([]bool, utf8.MaxRune+1)
		for _, x := range ranges {
			for r := x.First; r <= x.Last; r++ {
				set[r] = true
			}
		}
		compare(t, "category "+name, want, func(r rune) bool { return set[r] })
	}
}

func compare(t *testing.T, name string, want [][2]rune, in func(rune) bool) {
	t.Helper()
	if len(want) == 0 {
		t.Fatalf("no set %s", name)
	}
	set := make([]bool, utf8.MaxRune+1)
	for _, r := range want {
		for c := r[0]; c <= r[1]; c++ {
			set[c] = true
		}
	}
	bad := 0
	for r := rune(0); r <= utf8.MaxRune; r++ {
		if r >= 0xD800 && r < 0xE000 {
			continue
		}
		if in(r) != set[r] {
			if bad++; bad < 4 {
				t.Errorf("%s: %U is %v", name, r, !set[r])
			}
		}
	}
}

// An oracle for every character and millions of sequences is in the comparison with
// the engines' own library (see native); these are the cases by name.
func TestForms(t *testing.T) {
	marks := "a" + strings.Repeat("\u0301", 57)
	for _, c := range []struct {
		form     unitab.Form
		in, want string
	}{
		{unitab.NFC, "plain", "plain"},
		{unitab.NFC, "e\u0301", "é"},
		{unitab.NFC, "x\u0301é\u0327", "x\u0301\u0229\u0301"},
		{unitab.NFC, marks, "á" + strings.Repeat("\u0301", 56)}, // no U+034F
		{unitab.NFC, "\u1112\u1161\u11ab", "한"},
		{unitab.NFC, "\u212b\u2126\u0958", "Å\u03a9\u0915\u093c"},
		{unitab.NFC, "\U00011935\U00011930", "\U00011935\U00011930"}, // composes since Unicode 13
		{unitab.NFC, "a\u1ac1\u0301", "a\u1ac1\u0301"},               // a mark since Unicode 14
		{unitab.NFD, "한é", "\u1112\u1161\u11abe\u0301"},
		{unitab.NFKC, "ﬁ½ｶﾞ", "fi1⁄2ガ"},
		{unitab.NFKD, "ﬁé", "fie\u0301"},
	} {
		if got := string(c.form.Append(nil, c.in)); got != c.want {
			t.Errorf("form %d of %+q: %+q, want %+q", c.form, c.in, got, c.want)
		}
	}
}

func FuzzForms(f *testing.F) {
	f.Add("e\u0301\u0327 한 \u1100\u1161")
	f.Add("\xff\xcc")
	f.Add("e\xcc\xe1\xed\x95\u0305\xa7\x9c") // broken characters beside whole ones
	f.Fuzz(func(t *testing.T, s string) {
		for form := unitab.NFC; form <= unitab.NFKD; form++ {
			once := string(form.Append(nil, s))
			if twice := string(form.Append(nil, once)); twice != once {
				t.Fatalf("form %d of %+q: %+q, then %+q", form, s, once, twice)
			}
			if form == unitab.NFC && unitab.IsNFC(s) && once != s && utf8.ValidString(s) {
				t.Fatalf("%+q is said to be NFC", s)
			}
		}
	})
}

// TestTraits: characters whose answer depends on the version, and those that changed.
func TestTraits(t *testing.T) {
	for _, c := range []struct {
		name string
		in   func(rune) bool
		yes  string
		no   string
	}{
		{"punctuation", unitab.IsPunctuation, "!$+<=>^`|~_«。\u166d\U000111c9\U000111db", "a1 \u00a2\u20ac\u00d7\u2e43\U0001145b"},
		{"other", unitab.IsOther, "\x00\n\u0085\u00ad\u200b\ue000\U000e0001", "a \u0378\u08e2\ufffd"},
		{"nonspacing", unitab.IsNonspacing, "\u0301\u1734\U0001171e", "a\u1885\ua9bd\U000111c9\u0903"},
		{"mark", unitab.IsMark, "\u0301\u0903\u20dd\u1cf2", "a\U000111c9\u1ac0"},
		{"numeric", unitab.IsNumeric, "1²½Ⅻ〇\U00011de0\U00016ff4", "a一"},
	} {
		for _, r := range c.yes {
			if !c.in(r) {
				t.Errorf("%s: %U is not", c.name, r)
			}
		}
		for _, r := range c.no {
			if c.in(r) {
				t.Errorf("%s: %U is", c.name, r)
			}
		}
	}
}

func TestLower(t *testing.T) {
	var got []byte
	for _, r := range "AzÉİΣẞǅꭰᏸ\U00016ea0中" {
		got = unitab.AppendLower(got, r)
	}
	if want := "azéi\u0307σßǆꭰᏸ\U00016ebb中"; string(got) != want {
		t.Errorf("%+q, want %+q", got, want)
	}
}

// TestGraphemes: a case of each rule of UAX #29, with a border before each "|".
func TestGraphemes(t *testing.T) {
	for _, s := range []string{
		"a|b", "\r\n|a", "\n|\u0301", "a\u0301\u0302|b", "\r|\r", "\u1100\u1160\u11a8|\u1100", "가\u11a8|가", "각\u11a8|\u1160", "a\u200d|b", "\u0915\u0903|a",
		"\u0600a|b", "\u0915\u094d\u0937|\u0937", "\u0915\u0301|\u0937", "\u0915\u094d\u0301\u0937", "\u0915\u094d|a", "👩\u200d🚀|x", "👩🏽\u200d🚀", "👩\u200d\u200d|🚀", "a\u200d|🚀", "🇫🇷|🇩🇪|🇫", "©\u0301|©",
	} {
		whole := strings.ReplaceAll(s, "|", "")
		var got []string
		for rest := whole; rest != ""; {
			n := unitab.Grapheme(rest)
			got = append(got, rest[:n])
			rest = rest[n:]
		}
		if g := strings.Join(got, "|"); g != s {
			t.Errorf("%+q, want %+q", g, s)
		}
	}
}
