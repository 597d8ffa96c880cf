package native_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/eppctl/eppctl/internal/core/tokenizer/native"
)

// everywhere are patterns that both engines read, though not always as the same.
var everywhere = []string{
	`\B.`, `\w+`, `\W`, `[\w]+`, `[^\w]+`, `[\W_]+`, `\bin|er\b|\B\p{N}\B`, `\A.|e\Z|\n+\Z|\R|.\z`, `\N\O|\h+|\H`,
	`[\p{L}&&[^a-m]]+`, `[^\p{L}&&\w]`, `[\p{L}&&\p{Lu}&&[^A-C]a]+`, `[^&&a]`, `[a-z&&[aeiou][:digit:]]+`,
	`[[:alpha:]]+|[[:digit:]]`, `[[:^alpha:]]+`, `[[:alnum:]_]+`, `[[:punct:]]`, `[[:graph:]]+`, `[^[:print:]]`, `[[:upper:]][[:lower:]]*`, `[[:space:][:cntrl:]]`, `[[:blank:]]+`, `[[:xdigit:]]+`, `[[:word:]]+|[[:ascii:]]`,
	`(?i:[a-z])+`, `(?i:[^a-z])+`, `(?i:[^ß-é&&\p{L}])`, `(?i:[k&&[^s]]|[^s-t])`, `(?i)the|É|[x-z]`, `(?i:\p{Lu})`, `(?i:\p{Ll}+)`, `(?i:\x{73}|ω|ǆ|\u0419)`, `(?i:[\p{Lu}&&[^\p{Latin}]])`,
	`[a[^b]]`, `[[a]-z]`, `[]e]|[^]\s]+`, `[a-c-z\-]`, `[e-]`, `[-e]`, `[\x61-\u0065\b\t-\r]`, `[a-y[1-9]&&[^e]]+`,
	`\p{Thai}+|\p{Greek}|\p{ hiragana }+`, `\p{Letter}+|\p{Decimal_Number}`, `\p{Alphabetic}+`, `\p{^L}`, `\p{Uppercase}\p{lowercase}*`, `\p{LC}+|\p{Punct}|\p{Cntrl}|\p{Space}|\p{Digit}`,
	`e{,2}n|[a-z]{2,3}`, `\e|\a|(?:x|\p{Lu}.)++.`,
}

// forHub are those that only Hugging Face tokenizers' engine reads, or that match between
// two characters, at which tiktoken fails.
var forHub = []string{
	`\b`, `\p{Alnum}+|\p{Graph}`, `\p{Print}+|\p{XDigit}|\p{Blank}`, `\p{Upper}\p{Lower}*|\P{Alpha}`, `(?:in){2}?|e{2}?`, `[!--]`,
}

// revealing is a vocabulary in which most borders between pieces show: all pairs of
// bytes are entries, in random order.
func revealing() (ranks []byte) {
	for b := range 256 {
		ranks = fmt.Appendf(ranks, "%s %d\n", base64.StdEncoding.EncodeToString([]byte{byte(b)}), b)
	}
	for i, pair := range rand.New(rand.NewPCG(1, 1)).Perm(1 << 16) {
		ranks = fmt.Appendf(ranks, "%s %d\n", base64.StdEncoding.EncodeToString([]byte{byte(pair >> 8), byte(pair)}), 256+i)
	}
	return ranks
}

// patternTexts are characters (beyond U+2000 one in 32, all if TOKENIZER_FUZZ is set),
// random texts, and what stands at the borders of words.
func patternTexts() []string {
	texts := randomTexts(100)
	all := os.Getenv("TOKENIZER_FUZZ") != ""
	everyOf("a%b", func(r rune) bool { return all || r < 0x2000 || r%32 == 7 && !alike(r) }, func(s string) { texts = append(texts, s) })
	for _, a := range []string{"²", "¼", "a", "_", "\u0301", "\u200d", "‿", "①", "Ⓐ", "٣", "-", "\n"} {
		for _, b := range []string{"½", "é", "_", "\u200c", "\u0e33", "\n", "\n\n", "ß", "K", "ſ", " "} {
			texts = append(texts, a+b, a+b+a, b+b+a+"\n", "st"+a+"SS"+b+"\r\n")
		}
	}
	return texts
}

// TestPatterns holds patterns without a hand-written splitter against the engines'
// regular expressions: Oniguruma's by Hugging Face tokenizers, fancy-regex by tiktoken.
func TestPatterns(t *testing.T) {
	texts := patternTexts()
	shown := meta("always", false) // the start of each piece shows in the ids
	for _, p := range raceSample(slices.Concat(everywhere, forHub)) {
		t.Run("hub "+p, func(t *testing.T) {
			t.Parallel()
			pre := sequence("pretokenizers", splitOn(object{"Regex": p}, "Isolated", false), shown, byteLevel)
			compareObject(t, object{"pre_tokenizer": pre, "model": byteModel()}, texts)
		})
	}
	ranks := revealing()
	file := filepath.Join(t.TempDir(), "ranks")
	if err := os.WriteFile(file, ranks, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, p := range raceSample(everywhere) {
		t.Run("ranks "+p, func(t *testing.T) {
			t.Parallel()
			p := p + `|[^e]` // what is not matched is dropped
			options, err := json.Marshal(object{"pattern": p, "specials": object{}, "nfc": false})
			if err != nil {
				t.Fatal(err)
			}
			tok, err := native.LoadTiktoken(ranks, native.RankOptions{Pattern: p})
			if err != nil {
				t.Fatal(err)
			}
			compare(t, tok, newOracleOf(t, "ranks", file, string(options)), texts)
		})
	}
}

// kimi is the pattern of Kimi-K2: pat_str of tokenization_kimi.py beside the model.
const kimi = `[\p{Han}]+|` +
	`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|` +
	`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|` +
	`\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`

// TestKimi holds the splitter of Kimi's rank files against tiktoken, which its engines
// split by: the vocabulary itself is no file that may be had here.
func TestKimi(t *testing.T) {
	ranks := revealing()
	file := filepath.Join(t.TempDir(), "ranks")
	if err := os.WriteFile(file, ranks, 0o600); err != nil {
		t.Fatal(err)
	}
	options, err := json.Marshal(object{"pattern": kimi, "specials": object{}, "nfc": false})
	if err != nil {
		t.Fatal(err)
	}
	texts := patternTexts()
	for _, pattern := range []string{"kimi", kimi} {
		tok, err := native.LoadTiktoken(ranks, native.RankOptions{Pattern: pattern})
		if err != nil {
			t.Fatal(err)
		}
		if got := tok.Info().Split; got != "kimi" {
			t.Errorf("split by %s", got)
		}
		compare(t, tok, newOracleOf(t, "ranks", file, string(options)), texts)
	}
}
