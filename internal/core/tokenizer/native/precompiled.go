package native

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/eppctl/eppctl/internal/core/tokenizer/unitab"
)

// precompiled is the normaliser Precompiled. It does not do what SentencePiece does
// with the same map: a grapheme cluster of up to five bytes is replaced as a whole by
// what its shortest prefix in the map becomes; in longer ones, and where no prefix is,
// each character is looked up alone.
type precompiled struct{ *charsMap }

// maxCluster is the first length, in bytes, that is taken character by character.
const maxCluster = 6

func (n precompiled) normalize(_ context.Context, x passage, limit int) (passage, error) {
	var b strings.Builder
	a := aligner{old: x, done: x.head == 0}
	for i := 0; i < len(x.s) && b.Len() <= limit; {
		size := unitab.Grapheme(x.s[i:])
		cluster := x.s[i : i+size]
		i += size
		if len(cluster) < maxCluster {
			if to, ok := n.shortest(cluster); ok {
				put(&b, &a, cluster, to)
				continue
			}
		}
		for at, r := range cluster {
			old := cluster[at : at+utf8.RuneLen(r)]
			to, ok := n.shortest(old)
			if !ok {
				to = old
			}
			put(&b, &a, old, to)
		}
	}
	if b.Len() > limit {
		return passage{}, errGrowth
	}
	a.flush()
	return passage{b.String(), a.head}, nil
}

// put writes what old becomes: the last characters of a longer text are new, the last
// of a shorter one is in the place of the rest of the old.
func put(b *strings.Builder, a *aligner, old, to string) {
	b.WriteString(to)
	if a.done {
		return
	}
	was, is := utf8.RuneCountInString(old), utf8.RuneCountInString(to)
	if is == 0 {
		a.drop(was)
		return
	}
	at := 0
	for _, r := range to {
		change := 0
		if at++; at > was {
			change = 1
		}
		a.add(utf8.RuneLen(r), change)
	}
	if was > is {
		a.drop(was - is)
	}
}
