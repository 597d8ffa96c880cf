package native_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/eppctl/eppctl/internal/core/tokenizer/native"
)

func encode(t testing.TB, tok *native.Tokenizer, s string) []uint32 {
	t.Helper()
	ids, err := tok.Encode(s, false)
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

// TestTK20: cuts behind an added token; TK-21: cuts inside text. The ids of the whole
// are those of the parts.
func TestTK20(t *testing.T) {
	for _, name := range names() {
		t.Run(name, func(t *testing.T) {
			tok := load(t, name)
			w := newWriter(20)
			inText, tokens := 0, 0
			for range raceSome(3000) {
				s := w.text(1 + w.IntN(300))
				whole := encode(t, tok, s)
				for _, c := range tok.CutsOf(s) {
					left, right := encode(t, tok, s[:c.At]), tok.EncodePart(s[c.At:], c.Inside)
					if !slices.Equal(slices.Concat(left, right), whole) {
						t.Fatalf("%+q cut at %d", s, c.At)
					}
					if c.Inside {
						inText++
					} else {
						tokens++
					}
				}
			}
			t.Logf("%d cuts inside text, %d behind tokens", inText, tokens)
			if inText == 0 || tokens == 0 && tok.Info().Added > 0 {
				t.Error("too few cuts to show anything")
			}
		})
	}
}

// TestTK23 grows prompts turn by turn through the cache: the ids are those of a full
// run, from several goroutines too, and the bound holds.
func TestTK23(t *testing.T) {
	for _, name := range names() {
		t.Run(name, func(t *testing.T) {
			const limit = 1 << 20
			tok := load(t, name)
			c := native.NewCache(tok, limit)
			var all sync.WaitGroup
			for g := range 4 {
				all.Go(func() {
					w := newWriter(uint64(23 + g%2)) // two of each conversation
					reused := 0
					for range 3 {
						prompt := ""
						for range 8 {
							prompt += w.text(2000 + w.IntN(6000))
							got, n, err := c.Encode(prompt, true)
							want, err2 := tok.Encode(prompt, true)
							if err != nil || err2 != nil || !slices.Equal(got, want) {
								t.Errorf("%d bytes: %v %v %s", len(prompt), err, err2, difference(got, want))
								return
							}
							reused += n
						}
					}
					if reused == 0 {
						t.Error("nothing was found again")
					}
				})
			}
			all.Wait()
			if n := c.Bytes(); n > limit || n == 0 {
				t.Errorf("%d bytes of %d", n, limit)
			}
		})
	}
}

// TestCacheForks: prompts that begin alike and go on differently lead each other's chunks
// astray, and those that make room for others lead to these. The ids are those of a full
// run, and where nothing had to go, all but the tail is found.
func TestCacheForks(t *testing.T) {
	tok := load(t, "deepseek_v4")
	rounds := 10
	if raceBuild { // one goroutine
		rounds = 2
	}
	for _, limit := range []int{256 << 10, 16 << 20} {
		c := native.NewCache(tok, limit)
		w := newWriter(31)
		common := w.text(30_000)
		var prompts []string
		for range 6 {
			fork := common + w.text(10_000)
			prompts = append(prompts, fork+w.text(20_000), fork+w.text(20_000), w.text(9_000)+common)
		}
		for k := range rounds * len(prompts) {
			s := prompts[k*7%len(prompts)]
			got, found, err := c.Encode(s, false)
			if want := encode(t, tok, s); err != nil || !slices.Equal(got, want) {
				t.Fatalf("%d: %v %s", limit, err, difference(got, want))
			}
			if limit > 1<<20 && k >= len(prompts) && found < len(s)/2 {
				t.Errorf("%d of %d bytes found", found, len(s))
			}
		}
	}
}

// TestCacheAllocations: a call allocates its result, and no more than one thing else, for a
// text that the cache has and one that goes on where it ends. What it keeps of new chunks
// comes on top of that.
func TestCacheAllocations(t *testing.T) {
	known := strings.Repeat("The quick brown fox, 12 of them: jumps(over) <|im_start|>lazy dogs. 中文也可以。\n", 700)
	for _, name := range names() {
		tok := load(t, name)
		for what, next := range map[string]func(i int) string{
			"known":   func(int) string { return known },
			"goes on": func(i int) string { return known + strings.Repeat(" and on", i+1) },
		} {
			c := native.NewCache(tok, 64<<20)
			var texts []string
			for i := range 12 {
				texts = append(texts, next(i))
			}
			for _, s := range []string{known, known} { // the scratch has its size
				if _, _, err := c.Encode(s, false); err != nil {
					t.Fatal(err)
				}
			}
			i := 0
			n := testing.AllocsPerRun(10, func() {
				if _, _, err := c.Encode(texts[i], false); err != nil {
					t.Fatal(err)
				}
				i++
			})
			if n > 2 {
				t.Errorf("%s, %s: %v allocations", name, what, n)
			}
		}
	}
}

// TestCacheHammer: conversations that begin alike, that repeat themselves so that chunks
// lead to themselves, and calls that end half way, all at the same time, in caches that
// hold nothing, little and everything. What is returned is the caller's own.
func TestCacheHammer(t *testing.T) {
	tok := load(t, "deepseek_v4")
	w := newWriter(99)
	base, loop := w.text(20_000), strings.Repeat(w.text(4100), 6)
	var prompts []string
	var want [][]uint32
	for range 4 {
		prompts = append(prompts, base+w.text(9000), loop+w.text(5000), w.text(5000)+base, base+base+w.text(3000))
	}
	for _, s := range prompts {
		want = append(want, encode(t, tok, s))
	}
	for _, limit := range []int{0, 100 << 10, 300 << 10, 8 << 20} {
		c := native.NewCache(tok, limit)
		var all sync.WaitGroup
		for g := range 8 {
			all.Go(func() {
				w := newWriter(uint64(g))
				for range 40 {
					i := w.IntN(len(prompts))
					ctx := &ending{Context: t.Context()}
					ctx.looks.Store(int64(w.IntN(100)))
					got, found, err := c.EncodeContext(ctx, prompts[i], false)
					if err == nil && !slices.Equal(got, want[i]) || err != nil && !errors.Is(err, context.Canceled) {
						t.Errorf("%d bytes, prompt %d: %v %s", limit, i, err, difference(got, want[i]))
					}
					clear(got)
					if n := c.Bytes(); n < 0 || n > limit || found < 0 || found > len(prompts[i]) {
						t.Errorf("%d bytes of %d, %d of %d found", n, limit, found, len(prompts[i]))
					}
				}
			})
		}
		all.Wait()
	}
}

// TestCacheBound: a stream of new texts never takes more than the limit, and what is
// asked for often stays.
func TestCacheBound(t *testing.T) {
	const limit = 1 << 20
	tok := load(t, "deepseek_v4")
	c := native.NewCache(tok, limit)
	w := newWriter(1)
	hot := strings.Repeat("the quick brown fox jumps over the lazy dog ", 400)
	for range 200 {
		if _, _, err := c.Encode(hot, false); err != nil {
			t.Fatal(err)
		}
		if _, _, err := c.Encode(w.text(20_000), false); err != nil {
			t.Fatal(err)
		}
		if n := c.Bytes(); n > limit {
			t.Fatalf("%d bytes of %d", n, limit)
		}
	}
	if _, n, _ := c.Encode(hot, false); n < len(hot)/2 {
		t.Errorf("%d of %d bytes found", n, len(hot))
	}
}

func FuzzCache(f *testing.F) {
	w := newWriter(5)
	for range 8 {
		f.Add(w.text(300), uint8(w.IntN(256)))
	}
	f.Fuzz(func(t *testing.T, s string, times uint8) {
		s = strings.Repeat(strings.ToValidUTF8(s, "?")+" ", 1+int(times))
		for _, name := range []string{"deepseek_v4", "mistral_v3"} {
			tok := load(t, name)
			c := native.NewCache(tok, 1<<20)
			want, err := tok.Encode(s, false)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if got, _, err := c.Encode(s, false); err != nil || !slices.Equal(got, want) {
					t.Fatalf("%s: %v %s", name, err, difference(got, want))
				}
			}
		}
	})
}
