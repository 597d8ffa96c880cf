package split

import (
	"strings"

	"github.com/eppctl/eppctl/internal/core/tokenizer/unitab"
)

// Parts that several patterns share, as their files write them.
const (
	contractions = `(?i:'s|'t|'re|'ve|'m|'ll|'d)`
	blanksTail   = `|\s*[\r\n]+|\s+(?!\S)|\s+`
	upperSet     = `\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}`
	lowerSet     = `\p{Ll}\p{Lm}\p{Lo}\p{M}`
	lead         = `[^\r\n\p{L}\p{N}]?`
	notHan       = `&&[^\p{Han}]`
)

func cased(tail string) string {
	return lead + `[` + upperSet + `]*[` + lowerSet + `]+` + tail + `|` + lead + `[` + upperSet + `]+[` + lowerSet + `]*` + tail
}

// The patterns that are known by their text.
const (
	PatternGPT2 = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

	patternCL100K1    = contractions + `|` + lead + `\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*` + blanksTail
	patternCL100K3    = contractions + `|` + lead + `\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*` + blanksTail
	patternCL100KMark = contractions + `|` + lead + `[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*` + blanksTail
	patternTiktoken   = `'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s`
)

var (
	patternO200K  = cased(contractions+`?`) + `|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*` + blanksTail
	patternTekken = cased(``) + `|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*` + blanksTail
	patternKimi   = `[\p{Han}]+|` +
		lead + `[` + upperSet + notHan + `]*[` + lowerSet + notHan + `]+` + contractions + `?|` +
		lead + `[` + upperSet + notHan + `]+[` + lowerSet + notHan + `]*` + contractions + `?` +
		`|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*` + blanksTail
	patternDeepSeek = strings.Join([]string{
		`\p{N}{1,3}`,
		`[一-龥぀-ゟ゠-ヿ]+`,
		`[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_` + "`" + `{|}~][A-Za-z]+|[^` + "\r\n" + `\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[` + "\r\n" + `]*|\s*[` + "\r\n" + `]+|\s+(?!\S)|\s+`,
	}, chained)
)

// chained joins the patterns of Splits that follow each other.
const chained = "\x00"

// known are the splitters by the text of their pattern.
var known = map[string]*Splitter{
	PatternGPT2:       {Name: "gpt2", next: gpt2{}.next},
	patternCL100K1:    {Name: "cl100k/1", next: cl100k{digits: 1, word: letter}.next, rule: asciiRule{on: true, digits: 1, leading: true}},
	patternCL100K3:    {Name: "cl100k/3", next: cl100k{digits: 3, word: letter}.next, rule: asciiRule{on: true, digits: 3, leading: true}},
	patternCL100KMark: {Name: "cl100k/marks", next: cl100k{digits: 1, word: letter | unitab.Mark}.next, rule: asciiRule{on: true, digits: 1, leading: true}},
	patternTiktoken:   {Name: "cl100k/tiktoken", next: cl100k{digits: 3, word: letter, tail: true}.next, rule: asciiRule{on: true, digits: 3, leading: true}},
	patternO200K:      {Name: "o200k", next: o200k{digits: 3, contraction: true, slash: true}.next, rule: asciiRule{on: true, digits: 3, cased: true, suffix: true, slash: true}},
	patternTekken:     {Name: "tekken", next: o200k{digits: 1, slash: true}.next, rule: asciiRule{on: true, digits: 1, cased: true, slash: true}},
	patternKimi:       {Name: "kimi", next: o200k{digits: 3, contraction: true, han: true}.next, rule: asciiRule{on: true, digits: 3, cased: true, suffix: true}},
	patternDeepSeek:   {Name: "deepseek", next: deepseek{}.next, rule: asciiRule{on: true, digits: 3, stretches: true}},
}

// ForPatterns returns the hand-written splitter of Splits with these patterns, one
// after the other, each leaving matches isolated; nil if there is none. The pattern of
// tiktoken is not among them: in a Split its {1,3}+ is one or more times one to three.
func ForPatterns(patterns ...string) *Splitter {
	joined := strings.Join(patterns, chained)
	if joined == patternTiktoken {
		return nil
	}
	return known[joined]
}

// ForRanked returns the hand-written splitter of a pattern of ranks, or nil.
func ForRanked(pattern string) *Splitter { return known[pattern] }

// families are the names that a rank file, which has no pattern, is loaded by.
var families = map[string]string{
	"gpt2": PatternGPT2, "cl100k": patternTiktoken, "llama3": patternCL100K3, "qwen2": patternCL100K1,
	"qwen3.5": patternCL100KMark, "o200k": patternO200K, "tekken": patternTekken, "kimi": patternKimi,
}

// ForFamily returns the splitter of a family by its short name, or nil.
func ForFamily(name string) *Splitter { return known[families[name]] }
