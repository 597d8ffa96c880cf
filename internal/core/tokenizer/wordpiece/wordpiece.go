// Package wordpiece encodes words as BERT and its kin do: at each place the longest
// entry, where entries that do not start a word have a prefix; a word of which a part
// has no entry is unknown as a whole.
package wordpiece

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxChars caps the longest word that is looked up in parts. Files say 100 or 200.
const MaxChars = 1 << 10

// Model is immutable and may be used from any goroutine.
type Model struct {
	start, inner lexicon
	unknown      uint32
	chars        int
}

// lexicon is entries by their text.
type lexicon struct {
	ids     map[string]uint32
	longest int // in bytes
}

func (l *lexicon) add(text string, id uint32) {
	l.ids[text] = id
	l.longest = max(l.longest, len(text))
}

// New builds a model from entries. A word of more characters than chars is unknown.
func New(entries map[string]uint32, prefix, unknown string, chars int) (*Model, error) {
	m := &Model{start: lexicon{ids: map[string]uint32{}}, inner: lexicon{ids: map[string]uint32{}}, chars: chars}
	if chars < 0 || chars > MaxChars {
		return nil, fmt.Errorf("words of %d characters are beyond the limit of %d", chars, MaxChars)
	}
	id, ok := entries[unknown]
	if !ok {
		return nil, fmt.Errorf("unk_token %q is not in the vocabulary", unknown)
	}
	m.unknown = id
	for text, id := range entries {
		m.start.add(text, id) // the prefix may be text, too
		if rest, ok := strings.CutPrefix(text, prefix); ok {
			m.inner.add(rest, id)
		}
	}
	return m, nil
}

// Append appends the ids of a word.
func (m *Model) Append(out []uint32, word string) []uint32 {
	before := len(out)
	if utf8.RuneCountInString(word) > m.chars {
		return append(out, m.unknown)
	}
	in := &m.start
	for word != "" {
		n, id := in.prefix(word)
		if n == 0 {
			return append(out[:before], m.unknown)
		}
		out, word, in = append(out, id), word[n:], &m.inner
	}
	return out
}

// prefix returns the longest entry that a text starts with; n is 0 if there is none.
func (l *lexicon) prefix(s string) (n int, id uint32) {
	for n = len(s); n > 0; {
		if n <= l.longest {
			if id, ok := l.ids[s[:n]]; ok {
				return n, id
			}
		}
		_, size := utf8.DecodeLastRuneInString(s[:n])
		n -= size
	}
	return 0, 0
}
