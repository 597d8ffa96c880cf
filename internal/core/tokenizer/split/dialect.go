package split

import (
	"slices"
	"strings"

	"github.com/eppctl/eppctl/internal/core/tokenizer/unitab"
)

// set is a set of characters.
type set = []unitab.Range

// dialect is what constructs mean in one engine and not in another.
type dialect struct {
	places   map[byte]string // what ., $ and ^ are, and anchors behind a backslash
	interval [2]string       // what + behind {n,m} makes of it
	exactly  [2]string       // what ? behind {n} makes of it
	simple   bool            // without regard to case, a character is never several; see fold
	word     func() set      // \w outside brackets, and what \b is between
	inside   func() set      // \w inside brackets
	posix    func(name string) (set, bool)
	property func(name string) (set, bool)
}

var (
	oniguruma = dialect{
		places: map[byte]string{
			'.': `[^\n]`,
			// A line ends in front of a line feed, always, and none begins behind the
			// line feed that ends the text.
			'$': `(?=\n|\z)`, '^': `(?:\A|(?<=\n)(?!\z))`, 'Z': `(?=\n?\z)`,
		},
		interval: [2]string{"(?:", ")+"},
		exactly:  [2]string{"(?:", ")?"},
		word: func() set {
			// Characters below U+0100 are looked up in a table of ISO 8859-1, in which
			// all numbers are of words.
			return unitab.Union(word(), set{{First: '²', Last: '³'}, {First: '¹', Last: '¹'}, {First: '¼', Last: '¾'}})
		},
		inside: word,
		posix:  posix,
		property: func(name string) (set, bool) {
			switch low := strings.ToLower(name); low {
			case "punct": // the category alone
			case "word": // outside brackets it is not what it is inside
				return nil, false
			default:
				if s, ok := posix(low); ok {
					return s, true
				}
			}
			return unitab.Property(name)
		},
	}
	// fancy is fancy-regex, of Rust.
	fancy = dialect{
		places:   map[byte]string{'.': `[^\n]`, '$': `\z`, '^': `\A`, 'Z': `(?=\n*\z)`},
		interval: [2]string{"(?>", ")"},
		simple:   true,
		word:     joinedWord,
		inside:   joinedWord,
		posix: func(name string) (set, bool) {
			s, ok := posix(name)
			return unitab.Intersect(s, ascii), ok
		},
		property: func(name string) (set, bool) {
			if strings.EqualFold(name, "ascii") {
				return ascii, true
			}
			return unitab.Property(name)
		},
	}
)

var (
	ascii    = set{{First: 0, Last: 0x7F}}
	hexDigit = set{{First: '0', Last: '9'}, {First: 'A', Last: 'F'}, {First: 'a', Last: 'f'}}
	newline  = set{{First: '\n', Last: '\n'}}
)

// must returns a property that there is.
func must(name string) set {
	s, ok := unitab.Property(name)
	if !ok {
		panic("no property " + name)
	}
	return s
}

// word is the property of Unicode's TR18, without the joiners.
func word() set {
	return unitab.Union(must("Alphabetic"), must("M"), must("Nd"), must("Pc"))
}

// joinedWord is with them.
func joinedWord() set { return unitab.Union(word(), set{{First: 0x200C, Last: 0x200D}}) }

// posix returns the characters of a POSIX class as Oniguruma defines them.
func posix(name string) (set, bool) {
	switch name {
	case "alnum":
		return slices.Concat(must("Alphabetic"), must("Nd")), true
	case "alpha":
		return must("Alphabetic"), true
	case "ascii":
		return ascii, true
	case "blank":
		return slices.Concat(must("Zs"), set{{First: '\t', Last: '\t'}}), true
	case "cntrl":
		return must("Cc"), true
	case "digit":
		return must("Nd"), true
	case "graph":
		return unitab.Complement(slices.Concat(must("White_Space"), must("Cc"), must("Cn"), must("Cs"))), true
	case "lower":
		return must("Lowercase"), true
	case "print":
		graph, _ := posix("graph")
		return slices.Concat(graph, must("Zs")), true
	case "punct":
		return slices.Concat(must("P"), must("S")), true
	case "space":
		return must("White_Space"), true
	case "upper":
		return must("Uppercase"), true
	case "word":
		return word(), true
	case "xdigit":
		return hexDigit, true
	}
	return nil, false
}
