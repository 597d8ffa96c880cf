package main

import (
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"unicode/utf8"

	"github.com/eppctl/eppctl/internal/core/tokenizer/native"
)

// ownPhases are measured of our own encoder only; the unit of each.
var ownPhases = map[string]string{
	"second_turn_vs_first": "ratio", "growth_letter": "ratio", "growth_blanks": "ratio", "growth_random": "ratio",
	"growth_letter_empty": "ratio", "growth_blanks_empty": "ratio", "growth_random_empty": "ratio",
	"allocations": "per call",
}

// longPieces are the pieces of 128 kB that are worst.
func longPieces() map[string]string {
	r := rand.New(rand.NewPCG(1, 2))
	random := make([]byte, large)
	for i := range random {
		random[i] = 'a' + byte(r.IntN(26))
	}
	return map[string]string{"growth_letter": strings.Repeat("a", large), "growth_blanks": strings.Repeat(" ", large), "growth_random": string(random)}
}

// growth is the time for one piece of 128 kB over that for 64 kB, each met before.
func growth(encode func(string) []uint32) (out []sample) {
	for name, s := range longPieces() {
		half, whole := time(encode, s[:large/2]), time(encode, s)
		out = append(out, sample{Phase: name, Value: whole / half})
	}
	return out
}

// growthEmpty is the same where each is the first text of a tokenizer of its own.
func growthEmpty(file string) (out []sample, err error) {
	for name, s := range longPieces() {
		half, err := timeFirst(file, s[:large/2])
		if err != nil {
			return nil, err
		}
		whole, err := timeFirst(file, s)
		if err != nil {
			return nil, err
		}
		out = append(out, sample{Phase: name + "_empty", Value: whole / half})
	}
	return out, nil
}

// timeFirst is the time of a text behind one letter alone, in seconds.
func timeFirst(file, s string) (float64, error) {
	tok, err := load(file)
	if err != nil {
		return 0, err
	}
	if _, err := tok.Encode("a", false); err != nil {
		return 0, err
	}
	runtime.GC()
	start := cpu()
	_, err = tok.Encode(s, false)
	return cpu() - start, err
}

// time is the best of five, in seconds.
func time(encode func(string) []uint32, s string) float64 {
	best := math.Inf(1)
	for range warmTimes {
		start := cpu()
		encode(s)
		best = min(best, cpu()-start)
	}
	return best
}

// conversation is about 100 000 tokens of English, and more of other text.
const conversation = 450_000

// turns encodes a conversation and then the same with one more turn, through the cache
// of chunks. What came before is collected: the ids then lie in memory that the process
// has, as they do in one that lives long, and not in new pages of the system, which took
// a third of a second turn.
func turns(tok *native.Tokenizer, text string) []sample {
	var ratios []float64
	for k := range warmTimes {
		runtime.GC()
		c := native.NewCache(tok, 64<<20)
		at := k * small
		for !utf8.RuneStart(text[at]) {
			at++
		}
		first := strings.ToValidUTF8(text[at:at+conversation], "")
		second := first + " And one more turn." + strings.ToValidUTF8(text[:2*small], "")
		start := cpu()
		c.Encode(first, true)
		middle := cpu()
		c.Encode(second, true)
		ratios = append(ratios, (cpu()-middle)/(middle-start))
	}
	return []sample{{Phase: "second_turn_vs_first", Value: median(ratios)}}
}

// allocations is how many a warm call makes.
func allocations(encode func(string) []uint32, text string) sample {
	text = strings.ToValidUTF8(text, "")
	encode(text)
	const calls = 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range calls {
		encode(text)
	}
	runtime.ReadMemStats(&after)
	return sample{Phase: "allocations", Value: float64(after.Mallocs-before.Mallocs) / calls}
}
