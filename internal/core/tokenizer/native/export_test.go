package native

import "context"

// Forget empties what earlier calls left in the scratches.
func (t *Tokenizer) Forget() {
	for i := range t.scratches.slots {
		t.scratches.slots[i].Store(nil)
	}
}

// Cut is a place where a text may be cut.
type Cut struct {
	At     int
	Inside bool
}

// CutsOf returns all cuts of a text, of all kinds.
func (t *Tokenizer) CutsOf(s string) (out []Cut) {
	for at := 0; t.inText != nil; {
		end, inside, ok := t.cut(s, at, 1)
		if !ok {
			break
		}
		out = append(out, Cut{end, inside})
		at = end
	}
	words := *t
	words.inText = nil
	for at := 0; ; {
		end, inside, ok := words.cut(s, at, 1)
		if !ok {
			return out
		}
		out = append(out, Cut{end, inside})
		at = end
	}
}

// EncodePart encodes what stands behind a cut.
func (t *Tokenizer) EncodePart(s string, inside bool) []uint32 {
	sc := t.scratches.get(context.Background())
	defer t.scratches.put(sc)
	out, err := t.append(nil, s, part{inside: inside}, sc)
	if err != nil {
		panic(err)
	}
	return out
}
