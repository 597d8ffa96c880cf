package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"

	"github.com/eppctl/eppctl/internal/core/pod"
)

// scenario is one way in which prompts meet a cache.
type scenario struct {
	name string
	run  func(ctx context.Context, d *drive) error
}

// scenarios in the order in which they run: the last two empty the cache.
var scenarios = []scenario{
	{"cold and repeat", sizes},
	{"branch", branches},
	{"shared system prompt, multi-turn chat", chats},
	{"text", texts},
	{"salt", salts},
	{"LoRA", adapters},
	{"answer as history", generated},
	{"concurrent equal prompts", concurrent},
	{"long prompts with evictions", evictions},
	{"reset", resets},
	{"restart", restarts},
}

// sizes: below a block, at its borders and beyond, cold and again. A prompt of
// whole blocks loses its last one: engines compute the last token in any case.
func sizes(ctx context.Context, d *drive) error {
	b := d.blockSize
	for _, n := range []int{b / 2, b - 1, b, b + 1, 2*b - 1, 2 * b, 2*b + 1, 5 * b, 5*b + 3} {
		p := d.ids(n)
		for _, again := range []string{"cold", "repeat"} {
			if err := d.completion(ctx, fmt.Sprintf("%d tokens, %s", n, again), body{"prompt": p}); err != nil {
				return err
			}
		}
	}
	return nil
}

func branches(ctx context.Context, d *drive) error {
	b := d.blockSize
	base := d.ids(5 * b)
	for _, s := range []struct {
		name   string
		prompt []int
	}{
		{"base", base},
		{"at a block border", append(base[:3*b:3*b], d.ids(2*b)...)},
		{"inside a block", append(base[:3*b+4:3*b+4], d.ids(2*b)...)},
		{"first token differs", append(d.ids(1), base[1:]...)},
		{"extended", append(base[:5*b:5*b], d.ids(b+8)...)},
		{"its first blocks alone", base[:4*b]},
		{"and one token more", base[:4*b+1]},
	} {
		if err := d.completion(ctx, s.name, body{"prompt": s.prompt}); err != nil {
			return err
		}
	}
	return nil
}

// chats: conversations of several turns behind one system prompt, each turn with
// the engine's own answers before it.
func chats(ctx context.Context, d *drive) error {
	system := map[string]string{"role": "system", "content": d.words(60)}
	for c := range 3 {
		history := []map[string]string{system}
		for turn := range 4 - c {
			history = append(history, map[string]string{"role": "user", "content": d.words(20)})
			answer, err := d.chat(ctx, fmt.Sprintf("conversation %d, turn %d", c+1, turn+1), body{"messages": history, "max_tokens": 12})
			if err != nil {
				return err
			}
			history = append(history, map[string]string{"role": "assistant", "content": answer})
		}
	}
	return nil
}

func texts(ctx context.Context, d *drive) error {
	text := d.words(80)
	for _, s := range []struct{ name, text string }{
		{"cold", text}, {"repeat", text}, {"extended", text + d.words(30)}, {"short", "hello"},
	} {
		if err := d.completion(ctx, s.name, body{"prompt": s.text}); err != nil {
			return err
		}
	}
	return nil
}

func salts(ctx context.Context, d *drive) error {
	p := d.ids(4*d.blockSize + 5)
	for _, s := range []struct{ name, salt string }{
		{"none", ""}, {"tenant-a", "tenant-a"}, {"tenant-a again", "tenant-a"}, {"tenant-b", "tenant-b"}, {"none again", ""},
	} {
		b := body{"prompt": p}
		if s.salt != "" {
			b["cache_salt"] = s.salt
		}
		if err := d.completion(ctx, s.name, b); err != nil {
			return err
		}
	}
	return nil
}

func adapters(ctx context.Context, d *drive) error {
	if !d.hasAdapter {
		d.note("not loaded: left out")
		return nil
	}
	p := d.ids(4*d.blockSize + 5)
	for _, s := range []struct{ name, model string }{
		{"base model", modelName}, {"adapter", adapter}, {"adapter again", adapter}, {"base model again", modelName},
	} {
		if err := d.completion(ctx, s.name, body{"prompt": p, "model": s.model}); err != nil {
			return err
		}
	}
	return nil
}

// generated: blocks that were filled while decoding count for the next prompt.
func generated(ctx context.Context, d *drive) error {
	text := d.words(40)
	answer, err := d.text(ctx, "long answer", body{"prompt": text, "max_tokens": 3 * d.blockSize, "ignore_eos": true})
	if err != nil {
		return err
	}
	return d.completion(ctx, "prompt and answer", body{"prompt": text + answer})
}

// concurrent: what one request of several at once finds depends on the order of
// the engine's steps, which no event tells.
func concurrent(ctx context.Context, d *drive) error {
	p := d.ids(6*d.blockSize + 8)
	var wg sync.WaitGroup
	errs := make([]error, 6)
	for i := range errs {
		wg.Go(func() {
			errs[i] = d.unpredictable("sent at once: their blocks are not announced yet").completion(ctx, fmt.Sprintf("%d of %d", i+1, len(errs)), body{"prompt": p})
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	d.settle(ctx)
	return d.completion(ctx, "afterwards", body{"prompt": p})
}

// evictions: more than the pool holds, then each again, the youngest first.
func evictions(ctx context.Context, d *drive) error {
	n := poolSize/6 - 12
	fills := make([][]int, 9)
	for i := range fills {
		fills[i] = d.ids(n)
		if err := d.completion(ctx, fmt.Sprintf("fill %d", i+1), body{"prompt": fills[i]}); err != nil {
			return err
		}
	}
	d.forget(ctx)
	for i := len(fills) - 1; i >= 0; i-- {
		if err := d.completion(ctx, fmt.Sprintf("fill %d again", i+1), body{"prompt": fills[i]}); err != nil {
			return err
		}
	}
	long := d.ids(maxLength - 2*d.blockSize)
	for _, again := range []string{"cold", "repeat"} {
		if err := d.completion(ctx, fmt.Sprintf("%d tokens, %s", len(long), again), body{"prompt": long}); err != nil {
			return err
		}
	}
	d.forget(ctx)
	return d.completion(ctx, "fill 1 after it", body{"prompt": fills[0]})
}

// resets: an idle vLLM tells of a reset with its next step; SGLang at once.
func resets(ctx context.Context, d *drive) error {
	p := d.ids(4*d.blockSize + 2)
	path, first := "/reset_prefix_cache", d.unpredictable("a reset is told with the next step's events")
	if d.engine.kind() == pod.EngineSGLang {
		path, first = "/flush_cache", d
	}
	for _, s := range []struct {
		name string
		d    *drive
	}{{"before", d}, {"before, again", d}, {"first after the reset", first}, {"second after the reset", d}} {
		if strings.HasPrefix(s.name, "first") {
			if err := d.post(ctx, "http://"+d.engine.addr()+path); err != nil {
				return err
			}
			d.settle(ctx)
		}
		if err := s.d.completion(ctx, s.name, body{"prompt": p}); err != nil {
			return err
		}
	}
	return nil
}

// restarts: a process that is killed has lost its cache, and says nothing.
func restarts(ctx context.Context, d *drive) error {
	p := d.ids(4*d.blockSize + 2)
	for _, name := range []string{"before", "before, again"} {
		if err := d.completion(ctx, name, body{"prompt": p}); err != nil {
			return err
		}
	}
	if err := d.restart(ctx); err != nil {
		return err
	}
	for _, name := range []string{"first after the restart", "second after the restart"} {
		if err := d.completion(ctx, name, body{"prompt": p}); err != nil {
			return err
		}
	}
	return nil
}

// ids draws token ids that are no special ones.
func (d *drive) ids(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = 300 + d.random.IntN(1700)
	}
	return out
}

// vocabulary are words that any tokenizer knows, in one piece or several.
var vocabulary = strings.Fields("river stone cloud paper bridge garden window market letter train morning winter summer kitchen music " +
	"orange silver yellow little quiet open carry build write answer question number engine memory")

func (d *drive) words(n int) string {
	var b strings.Builder
	for range n {
		b.WriteString(" " + vocabulary[d.random.IntN(len(vocabulary))])
	}
	return b.String()
}

// random is seeded: every run sends the same.
func random() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }
