package split

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// pool holds strings that stand at the borders of the rules.
var pool = []string{
	"'s", "'S", "'ſ", "'ll", "'lL", "'re", "'ve", "'d", "'m", "'t", "'", "''", "’s", "\u212a", "'\u212a",
	" ", "  ", "\t", "\n", "\r\n", "\n\n", " \n", "\n ", "\u00a0", "\u2028", "\u3000", "\u0085", "\u200b", "\ufeff", "\v", "\x1c", "\x00", "\x7f",
	"a", "B", "word", "Word", "WORD", "wOrD", "é", "É", "ǅ", "ʰ", "ا", "ไทย", "ก็", "가", "日本", "的", "々", "〇", "⺀", "・", "ー", "゛", "カ", "ひ", "龥", "龦",
	"1", "12", "123", "1234", "½", "Ⅻ", "²", "٣", "𝟘", ".", ",", "(", ")", "/", "//", "\n/", "=", "==", "_", "-", "<|", "|>", "¿", "€", "😀", "👩‍🚀", "\u0301", "\u0301\u0302", "़",
	"\U00010ffff", "\ue000", "\u1ac1", "\u0898",
}

func randomText(r *rand.Rand, n int) string {
	var b strings.Builder
	for range n {
		switch r.IntN(12) {
		case 0:
			b.WriteRune(rune(r.IntN(0x3000)))
		case 1:
			for range 1 + r.IntN(90) { // more than one block
				b.WriteByte(" abcdeXYZ019.,'/\n\t("[r.IntN(19)])
			}
		default:
			b.WriteString(pool[r.IntN(len(pool))])
		}
	}
	return strings.ToValidUTF8(b.String(), "?")
}

func pieces(p *Splitter, s string) (out []string) {
	for i := 0; i < len(s); {
		j := p.Next(s, i)
		if j <= i {
			return append(out, fmt.Sprintf("no progress at %d", i))
		}
		out = append(out, s[i:j])
		i = j
	}
	return out
}

func filled(p *Splitter, s string) (out []string) {
	var ends Ends
	for i := 0; i < len(s); {
		n, next := p.Fill(s, i, &ends)
		for _, e := range ends[:n] {
			out = append(out, s[i:e])
			i = int(e)
		}
		if i != next || n == 0 {
			return append(out, "lost its place")
		}
	}
	return out
}

// isolated splits as Splits with behaviour Isolated do, one after the other.
func isolated(t *testing.T, res []*Regex, s string) []string {
	list := []string{s}
	for _, re := range res {
		var out []string
		for _, s := range list {
			at := 0
			err := re.Matches(t.Context(), s, func(from, to int) {
				if from > at {
					out = append(out, s[at:from])
				}
				out = append(out, s[from:to])
				at = to
			})
			if err != nil {
				t.Fatal(err)
			}
			if at < len(s) {
				out = append(out, s[at:])
			}
		}
		list = out
	}
	return list
}

// TestTK11 holds each hand-written splitter, by blocks and piece by piece, against
// the pattern it stands for.
func TestTK11(t *testing.T) {
	for text, p := range known {
		t.Run(p.Name, func(t *testing.T) {
			var res []*Regex
			for _, pattern := range strings.Split(text, chained) {
				read := Compile
				if text == patternTiktoken {
					read = CompileRanked
				}
				re, err := read(pattern)
				if err != nil {
					t.Fatal(err)
				}
				res = append(res, re)
			}
			r := rand.New(rand.NewPCG(1, 2))
			for range 6000 {
				s := randomText(r, 1+r.IntN(24))
				want := isolated(t, res, s)
				if got := pieces(p, s); !slices.Equal(got, want) {
					t.Fatalf("%+q\n got %+q\nwant %+q", s, got, want)
				}
				if got := filled(p, s); !slices.Equal(got, want) {
					t.Fatalf("by blocks: %+q\n got %+q\nwant %+q", s, got, want)
				}
			}
		})
	}
}

// TestTK03: blank lines with trailing blanks.
func TestTK03(t *testing.T) {
	for _, name := range []string{"o200k", "llama3", "cl100k"} {
		if got := pieces(ForFamily(name), "a\n \nb"); !slices.Equal(got, []string{"a", "\n \n", "b"}) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestCompileRefuses(t *testing.T) {
	for _, c := range [][2]string{
		{`a\K`, `\K`}, {`\X`, `\X`}, {`\G`, `\G`}, {`[\R]`, `\R`}, {`\1`, `\1`}, {`\q`, `\q`}, {`\pL`, "in braces"}, {`\p{L`, "in braces"}, {`\p{Klingon}`, "Klingon"}, {`\p{Word}`, "Word"},
		{`[a-[b]]`, "hyphen"}, {`[\d-a]`, "hyphen"}, {`[[:alpha:]-z]`, "hyphen"}, {`[a-\d]`, "range"}, {`[z-a]`, "range"}, {`[[:vowel:]]`, "[:vowel:]"}, {`[[:a]]`, "[:a"},
		{`[a[b]`, "not closed"}, {`[]`, "not closed"}, {`[a&&`, "not closed"}, {`(?i:[s`, "not closed"}, {`[a-`, "not closed"}, {strings.Repeat("[", 20), "in each other"},
		{`(?i:[ß])`, `'ß', which is also "ss"`}, {`(?i:[\p{L}])`, "caseless"}, {`(?i:straße)`, "st"}, {`(?i:ß)`, "ß"}, {`(?i:(?:s)t)`, "st"}, {`(?i:s{1}t)`, "st"}, {`(?i:\x{66}i)`, "fi"},
		{`(?m:a)`, "(?m:"}, {`a(?i)b`, "(?i)"}, {`a{,}`, "quantifier"}, {`a{x}`, "quantifier"}, {`a{1`, "quantifier"}, {`\x{110000}`, "code point"}, {`\uD800`, "code point"}, {`\xE9`, "code point"}, {`\u12`, "digits"},
		{`(a`, "not closed"}, {`a)`, "unmatched"}, {`a\`, "backslash"}, {strings.Repeat("a", maxPattern+1), "bytes"}, {strings.Repeat(`\b`, 1000), "written out"},
	} {
		if _, err := Compile(c[0]); err == nil || !strings.Contains(err.Error(), c[1]) {
			t.Errorf("%s: %v", c[0], err)
		}
	}
}

// TestCompileRankedRefuses: what fancy-regex reads in another way.
func TestCompileRankedRefuses(t *testing.T) {
	for _, c := range [][2]string{{`[\w--a]`, "--"}, {`[!--a]`, "--"}, {`[a~~b]`, "~~"}, {`\p{Alnum}`, "Alnum"}, {`\p{Script=Greek}`, "Script"}} {
		if _, err := CompileRanked(c[0]); err == nil || !strings.Contains(err.Error(), c[1]) {
			t.Errorf("%s: %v", c[0], err)
		}
	}
}

// FuzzSplitters: pieces are the text, whatever the bytes are, and blocks make no
// difference.
func FuzzSplitters(f *testing.F) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		f.Add(randomText(r, 20))
	}
	f.Add("\xff\xe4\xb8")
	f.Fuzz(func(t *testing.T, s string) {
		for _, p := range known {
			a, b := pieces(p, s), filled(p, s)
			if strings.Join(a, "") != s || strings.Join(b, "") != s {
				t.Fatalf("%s loses text", p.Name)
			}
			if strings.ToValidUTF8(s, "?") == s && !slices.Equal(a, b) {
				t.Fatalf("%s: %+q by blocks %+q", p.Name, a, b)
			}
		}
	})
}
