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
		vocab      string
		own, other float64
	}{{"a", 200, 100}, {"b", 90, 100}, {"llama2", 50, 100}} {
		for round := range 3 {
			noise := float64(round + 1)
			for lib, v := range map[library]float64{own: c.own, hf: 1, fastokens: c.other} {
				r.add(c.vocab, lib, []sample{{"en", "new", large, v * noise}})
			}
		}
	}
	got := map[string]float64{}
	for _, row := range r.rows() {
		got[row.Name] = *row.Ratio
		if row.Name == "english_128kB_new_vs_fastokens" && row.Target != ">= 1.0" {
			t.Errorf("target %q", row.Target)
		}
	}
	for name, want := range map[string]float64{
		"a_english_128kB_new_vs_fastokens": 2, "english_128kB_new_vs_fastokens": 0.9, "spm_english_128kB_new_vs_fastokens": 0.5, "b_english_128kB_new_vs_hf": 90,
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
