package main

import (
	"slices"
	"strings"
	"testing"
)

// TestRows: ratios are taken round by round, the worst vocabulary gives the row
// without a name, and other ids are an error.
func TestRows(t *testing.T) {
	r := results{}
	for _, c := range []struct {
		vocab            string
		own, empty, turn float64
	}{{"a", 200, 140, 0.05}, {"b", 90, 110, 0.07}, {"llama2", 50, 150, 0.06}} {
		for round := range 3 {
			noise := float64(round + 1)
			for lib, v := range map[library][2]float64{own: {c.own, c.empty}, hf: {1, 1}, fastokens: {100, 100}} {
				r.add(c.vocab, lib, []sample{{"en", "new", large, v[0] * noise}, {"en", "empty", large, v[1] * noise}})
			}
			r.add(c.vocab, own, []sample{{"en", "second_turn_vs_first", 0, c.turn}, {"zh", "second_turn_vs_first", 0, c.turn + 0.01}})
		}
	}
	got, targets := map[string]float64{}, map[string]string{}
	for _, row := range r.rows() {
		if targets[row.Name] = row.Target; row.Ratio != nil {
			got[row.Name] = *row.Ratio
		} else {
			got[row.Name] = row.Value
		}
	}
	for name, want := range map[string]string{
		"english_128kB_new_vs_fastokens": ">= 1.0", "english_128kB_empty_vs_fastokens": ">= 1.2", "spm_english_128kB_empty_vs_fastokens": ">= 1.0",
		"chinese_second_turn_vs_first": "< 0.1",
	} {
		if targets[name] != want {
			t.Errorf("%s: target %q, want %q", name, targets[name], want)
		}
	}
	for name, want := range map[string]float64{
		"a_english_128kB_new_vs_fastokens": 2, "english_128kB_new_vs_fastokens": 0.5, "spm_english_128kB_new_vs_fastokens": 0.5, "b_english_128kB_new_vs_hf": 90,
		"english_128kB_empty_vs_fastokens": 1.1, "spm_english_128kB_empty_vs_fastokens": 1.5,
		"second_turn_vs_first": 0.07, "spm_second_turn_vs_first": 0.06, "chinese_second_turn_vs_first": 0.08,
	} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
}

// TestLoadTarget: it is for large vocabularies.
func TestLoadTarget(t *testing.T) {
	for vocab, want := range map[string]string{"gptoss": "<= 0.4", "qwen3": "", "llama2": ""} {
		if got := target(key{vocab: vocab, phase: "load", lib: own}, hf); got != want {
			t.Errorf("%s: %q, want %q", vocab, got, want)
		}
	}
}

func TestOtherIDs(t *testing.T) {
	r := results{}
	r.add("a", own, []sample{{"en", "ids", large, 7}})
	r.add("a", fastokens, []sample{{"en", "ids", large, 7}})
	if err := r.compare("a"); err != nil {
		t.Error(err)
	}
	r.add("a", own, []sample{{"en", "ids", large, 7}})
	r.add("a", hf, []sample{{"en", "ids", large, 8}})
	if err := r.compare("a"); err == nil || !strings.Contains(err.Error(), "hf gives other ids") {
		t.Error(err)
	}
}

func TestReadSamples(t *testing.T) {
	got, err := readSamples([]byte(`{"lang":"en","phase":"new","size":131072,"value":5}
{"lib":"go","phase":"load","ms":7,"round":1}
{"lang":"zh","phase":"warm","size":1024,"mbs":9}
`))
	want := []sample{{"en", "new", large, 5}, {"", "load", 0, 7}, {"zh", "warm", small, 9}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v %v", got, err)
	}
}

func TestPhases(t *testing.T) {
	seen := 0
	list := phases(strings.Repeat("x", large*2+small+betweens*between+smalls*small), func(s string) []uint32 {
		seen += len(s)
		return []uint32{1}
	})
	if len(list) != 7 || seen == 0 || list[6].Phase != "ids" {
		t.Errorf("%v", list)
	}
}
