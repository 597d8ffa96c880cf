package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/eppctl/eppctl/internal/core/tokenizer/native"
)

// sample is one measurement of one library, in MB/s of processor time, or ms.
type sample struct {
	Lang  string  `json:"lang"` // en, code, zh; empty for load
	Phase string  `json:"phase"`
	Size  int     `json:"size"`
	Value float64 `json:"value"`
}

// Each library does the same in a process of its own, on one core: load, encode one
// letter to be awake, then per language
//
//	empty  the first text of 1 kB, and then the first of 128 kB
//	       (384 kB of other text of the kind)
//	new    texts it has not seen: one of 128 kB, 96 of 1 kB
//	warm   the same again, best of five
const (
	large     = 128 << 10
	small     = 1 << 10
	smalls    = 96
	betweens  = 24
	between   = 16 << 10
	wordMega  = 1e6
	rotateBy  = 131071 // per round: each begins elsewhere in the corpus
	warmTimes = 5
)

var languages = []string{"en", "code", "zh"}

// measure is the work of the child process for our own encoder.
func measure(out io.Writer, file, corpus string, round int) error {
	runtime.GOMAXPROCS(1)
	enc := json.NewEncoder(out)
	for _, lang := range languages {
		text, err := rotated(filepath.Join(corpus, lang+".txt"), round)
		if err != nil {
			return err
		}
		start := cpu()
		tok, err := load(file)
		if err != nil {
			return err
		}
		if err := enc.Encode(sample{"", "load", 0, (cpu() - start) * 1e3}); err != nil {
			return err
		}
		runtime.GC()
		var fault error
		encode := func(s string) []uint32 {
			ids, err := tok.Encode(s, false)
			if err != nil {
				fault = err
			}
			return ids
		}
		encode("a")
		list := phases(text, encode)
		list = append(list, turns(tok, text)...)
		if lang == languages[0] {
			list = append(list, growth(encode)...)
			first, err := growthEmpty(file)
			if err != nil {
				return err
			}
			list = append(list, first...)
			list = append(list, allocations(encode, text[:large]))
		}
		for _, x := range list {
			x.Lang = lang
			if err := enc.Encode(x); err != nil {
				return err
			}
		}
		if fault != nil {
			return fault
		}
	}
	return nil
}

func load(file string) (*native.Tokenizer, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return native.LoadHuggingFace(raw)
}

func phases(text string, encode func(string) []uint32) []sample {
	cut := func(n int) (s string) {
		for n < len(text) && !utf8.RuneStart(text[n]) {
			n++
		}
		n = min(n, len(text))
		s, text = text[:n], text[n:]
		return s
	}
	var out []sample
	timed := func(phase string, size, times int, texts ...string) {
		best := 0.0
		for range times {
			n, start := 0, cpu()
			for _, s := range texts {
				encode(s)
				n += len(s)
			}
			best = max(best, float64(n)/wordMega/(cpu()-start))
		}
		out = append(out, sample{Phase: phase, Size: size, Value: best})
	}
	timed("empty", small, 1, cut(small))
	timed("empty", large, 1, cut(large))
	for range betweens {
		encode(cut(between))
	}
	big := cut(large)
	var little []string
	for range smalls {
		little = append(little, cut(small))
	}
	timed("new", large, 1, big)
	timed("warm", large, warmTimes, big)
	timed("new", small, 1, little...)
	timed("warm", small, warmTimes, little...)
	return append(out, sample{Phase: "ids", Size: large, Value: float64(checksum(encode(big)))})
}

// checksum is FNV-1a of the ids.
func checksum(ids []uint32) uint32 {
	h := uint32(2166136261)
	for _, id := range ids {
		h = (h ^ id) * 16777619
	}
	return h
}

func rotated(path string, round int) (string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	at := round * rotateBy % len(b)
	text := strings.ToValidUTF8(string(b[at:])+string(b[:at]), "")
	if need := large*2 + small + betweens*between + smalls*small; len(text) < need {
		return "", fmt.Errorf("%s has %d bytes, %d are needed", path, len(text), need)
	}
	return text, nil
}

// cpu is the processor time of this process in seconds.
func cpu() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
