//go:build goexperiment.simd && amd64

package split

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// TestIdeographsVector: a run of common ideographs ends where the comparison of one after
// the other ends it, whatever follows.
func TestIdeographsVector(t *testing.T) {
	if !hasAVX512 {
		t.Log("this processor has no AVX-512: there is nothing to compare")
		return
	}
	others := []string{"一", "龥", "\u4DFF", "\u4E00", "\u9F7F", "\u9F80", "\u9FFF", "\uA000", "あ", "，", "。", "é", "😀", "a", " ", "\n", "\u3FFF", "\u8000"}
	r := rand.New(rand.NewPCG(3, 4))
	long := 0
	for range 20_000 {
		var b strings.Builder
		for range r.IntN(60) {
			b.WriteRune(rune(0x4E00 + r.IntN(0x9F80-0x4E00)))
		}
		for range 1 + r.IntN(30) {
			b.WriteString(others[r.IntN(len(others))])
		}
		s := b.String()
		want := 0
		for isCommon(s, want) {
			want += 3
		}
		if got := ideographs(s, 0); got != want {
			t.Fatalf("%q: got %d, want %d", s, got, want)
		}
		if want > 63 && want+64 < len(s) {
			long++
		}
	}
	if long == 0 {
		t.Error("no run of more than a block: nothing was tried")
	}
}
