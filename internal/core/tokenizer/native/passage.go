package native

import (
	"strings"
	"unicode/utf8"
)

// passage is text on its way to the model.
type passage struct {
	s string
	// head is how many bytes at the start of s stand for the first character of the
	// whole text: Metaspace's prepend_scheme "first" asks, of each piece, whether its
	// start does. As the library counts it: a normaliser's new characters belong to the
	// one before, or to what they replace. 0 where nobody asks.
	head int
}

// start is a stretch that begins the whole text.
func start(s string) passage {
	_, n := utf8.DecodeRuneInString(s)
	return passage{s, n}
}

func (x passage) slice(from, to int) passage {
	return passage{x.s[from:to], min(max(x.head-from, 0), to-from)}
}

// prepend puts text in front that belongs to the first character.
func (x passage) prepend(s string) passage {
	if x.head > 0 {
		x.head += len(s)
	}
	x.s = s + x.s
	return x
}

// each appends what f makes of each character: the new ones belong to it.
func (x passage) each(limit int, f func(dst []byte, r rune) []byte) (passage, error) {
	out := make([]byte, 0, len(x.s)+len(x.s)/8)
	head := 0
	for i, r := range x.s {
		if out = f(out, r); len(out) > limit {
			return passage{}, errGrowth
		}
		if i < x.head {
			head = len(out)
		}
	}
	return passage{string(out), head}, nil
}

// filter leaves out characters.
func (x passage) filter(keep func(r rune) bool) passage {
	if strings.IndexFunc(x.s, func(r rune) bool { return !keep(r) }) < 0 {
		return x
	}
	x, _ = x.each(len(x.s), func(dst []byte, r rune) []byte {
		if keep(r) {
			dst = utf8.AppendRune(dst, r)
		}
		return dst
	})
	return x
}

// aligner finds the head of a changed text from what the library calls changes. Each
// new character has one: 0 stands for one old character, -n for one and the n behind
// it, 1 for none, and belongs to where the one before it ended.
type aligner struct {
	old  passage
	at   int // how much of old is used up
	head int
	done bool // the head has ended

	pending bool // a new character whose change may still grow
	size    int
	change  int
}

// add takes the next new character: its bytes and its change.
func (a *aligner) add(size, change int) {
	a.flush()
	a.pending, a.size, a.change = true, size, change
}

// drop takes n old characters that become nothing: the new one before takes them too.
func (a *aligner) drop(n int) {
	if a.pending {
		a.change -= n
	}
}

func (a *aligner) flush() {
	if !a.pending || a.done {
		return
	}
	a.pending = false
	from := a.at - 1
	if a.change <= 0 {
		from = a.at
		for range 1 - a.change {
			_, n := utf8.DecodeRuneInString(a.old.s[a.at:])
			a.at += n
		}
	}
	if from >= a.old.head {
		a.done = true
		return
	}
	a.head += a.size
}
