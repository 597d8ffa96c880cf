package split

import "strings"

// BeforeSpaces cuts before each run of blanks that follows something else, where
// keep does not forbid it. It is for vocabularies that have blanks only in front:
// the text of a SentencePiece model, in which a blank stands for U+2581.
type BeforeSpaces struct {
	// Keep holds, for entries that do have a blank behind another character, the
	// byte before and the byte behind their blanks (0 at the end): no cut is made
	// between such.
	Keep map[[2]byte]bool
	// Each cuts before every blank, whatever the entries are.
	Each bool
}

// Next returns the end of the piece of s that starts at byte i.
func (p *BeforeSpaces) Next(s string, i int) int {
	if p.Each {
		if k := strings.IndexByte(s[i+1:], ' '); k >= 0 {
			return i + 1 + k
		}
		return len(s)
	}
	j := i
	for j < len(s) && s[j] == ' ' {
		j++
	}
	for j < len(s) {
		k := strings.IndexByte(s[j:], ' ')
		if k < 0 {
			break
		}
		j += k
		behind := j
		for behind < len(s) && s[behind] == ' ' {
			behind++
		}
		if len(p.Keep) == 0 || !p.Keep[[2]byte{s[j-1], at(s, behind)}] {
			return j
		}
		j = behind
	}
	return len(s)
}

func at(s string, i int) byte {
	if i < len(s) {
		return s[i]
	}
	return 0
}

// Fill is Splitter.Fill for this one.
func (p *BeforeSpaces) Fill(s string, i int, ends *Ends) (n, next int) {
	for i < len(s) && n < len(ends) {
		i = p.Next(s, i)
		ends[n] = uint32(i)
		n++
	}
	return n, i
}
