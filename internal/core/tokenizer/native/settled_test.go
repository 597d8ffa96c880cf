package native_test

import (
	"slices"
	"testing"
)

// TestSettled: however a text goes on, the ids of its settled part stay.
func TestSettled(t *testing.T) {
	for _, name := range names() {
		t.Run(name, func(t *testing.T) {
			tok := load(t, name)
			w := newWriter(7)
			part, most := 0, 0
			for range 2000 {
				s := w.text(1 + w.IntN(200))
				at := w.IntN(len(s) + 1)
				end := tok.Settled(s, at)
				if end < 0 || end > at {
					t.Fatalf("%+q at %d: settled up to %d", s, at, end)
				}
				settled := encode(t, tok, s[:end])
				for _, other := range []string{"", s[at:], w.text(1 + w.IntN(20))} {
					got := encode(t, tok, s[:at]+other)
					if len(got) < len(settled) || !slices.Equal(got[:len(settled)], settled) {
						t.Fatalf("%+q at %d, settled up to %d, goes on with %+q: %s", s, at, end, other, difference(got, settled))
					}
				}
				part, most = part+end, most+at
			}
			t.Logf("%d of %d bytes are settled", part, most)
			if part < most/10 {
				t.Errorf("only %d of %d bytes are settled", part, most)
			}
		})
	}
}
