package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/eppctl/eppctl/internal/report"
)

const caption = `Native tokenizer (VALUE) and the library in the row's name (REFERENCE; hf and fastokens are the
Python wheels), MB/s or ms of processor time, medians; RATIO is the median of the ratios of
single rounds. Rows without a vocabulary's name are the worst of all vocabularies, those with
spm_ of the SentencePiece-style ones alone; the targets are those of byte-level vocabularies where
they differ. Of rows with unit ratio VALUE is one time over another of our own: the second turn of
a conversation of 450 kB over its first (of English, where no other text is named), one piece of
128 kB over one of 64 kB, met before or (empty) as a tokenizer's first text. The target of loading is for vocabularies of 200,000 entries.
`

// results are values by what was measured, one per round.
type results map[key][]float64

type key struct {
	vocab, lang, phase string
	size               int
	lib                library
}

func (r results) add(vocab string, lib library, list []sample) {
	for _, s := range list {
		k := key{vocab, s.Lang, s.Phase, s.Size, lib}
		r[k] = append(r[k], s.Value)
	}
}

// compare says where a library's ids of the last round are not ours.
func (r results) compare(vocab string) error {
	for k, ids := range r {
		if k.vocab != vocab || k.phase != "ids" || k.lib == own {
			continue
		}
		ours := r[key{k.vocab, k.lang, k.phase, k.size, own}]
		if ours[len(ours)-1] != ids[len(ids)-1] {
			return fmt.Errorf("%s, %s: %s gives other ids", vocab, k.lang, k.lib)
		}
	}
	return nil
}

// sentencePiece are the vocabularies that have rows, and a worst one, of their own.
var sentencePiece = map[string]bool{"llama2": true, "gemma3": true}

// entries200k are the byte-level vocabularies that the target of loading is for.
var entries200k = map[string]bool{"gptoss": true}

var spoken = map[string]string{"en": "english", "code": "code", "zh": "chinese", "": ""}

func (r results) rows() []report.Row {
	var rows []report.Row
	worst := map[string]report.Row{}
	keys := slices.SortedFunc(maps.Keys(r), func(a, b key) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	for _, k := range keys {
		if k.lib != own || k.phase == "ids" {
			continue
		}
		if unit, ok := ownPhases[k.phase]; ok {
			name := k.phase
			if k.lang != languages[0] {
				name = spoken[k.lang] + "_" + name
			}
			row := report.Row{Name: k.vocab + "_" + name, Value: median(r[k]), Unit: unit, Target: target(k, "")}
			rows = append(rows, row)
			note(worst, k, "", name, row)
			continue
		}
		for _, lib := range []library{hf, fastokens, prototype} {
			other := k
			if other.lib = lib; len(r[other]) == 0 {
				continue
			}
			name, unit := fmt.Sprintf("%s_%s_%s_vs_%s", spoken[k.lang], size(k.size), k.phase, lib), "MB/s"
			if k.phase == "load" {
				name, unit = "load_vs_"+string(lib), "ms"
			}
			row := report.Row{Name: k.vocab + "_" + name, Value: median(r[k]), Unit: unit, Target: target(k, lib)}.Against(median(r[other]))
			ratio := medianRatio(r[k], r[other])
			row.Ratio = &ratio
			rows = append(rows, row)
			note(worst, k, lib, name, row)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(worst)) {
		row := worst[name]
		row.Name = name
		rows = append(rows, row)
	}
	return rows
}

// note keeps the worst row of a name, and that of SentencePiece-style vocabularies.
func note(worst map[string]report.Row, k key, lib library, name string, row report.Row) {
	if sentencePiece[k.vocab] {
		keep(worst, "spm_"+name, row)
		k.vocab = "" // judged as the others beside it
		row.Target = target(k, lib)
	}
	keep(worst, name, row)
}

// keep keeps the worse of two rows: the lowest ratio of speed, the highest of time.
func keep(worst map[string]report.Row, name string, row report.Row) {
	old, ok := worst[name]
	value := func(r report.Row) float64 {
		if r.Ratio != nil {
			return *r.Ratio
		}
		return r.Value
	}
	if slower := value(row) < value(old); !ok || slower == (row.Unit == "MB/s") {
		worst[name] = row
	}
}

func size(n int) string { return fmt.Sprintf("%dkB", n>>10) }

// target is what the project wants of a row.
func target(k key, lib library) string {
	switch {
	case k.phase == "second_turn_vs_first":
		return "< 0.1"
	case strings.HasPrefix(k.phase, "growth_"):
		return "<= 2.5"
	case k.phase == "allocations":
		return "<= 2"
	case k.phase == "load" && lib == hf && entries200k[k.vocab]:
		return "<= 0.4"
	case k.phase != "load" && lib == prototype:
		return ">= 0.87"
	case lib != fastokens || k.size != large:
		return ""
	case k.phase == "empty" && !sentencePiece[k.vocab]:
		return ">= 1.2"
	case k.phase == "warm" && k.lang == "zh" && !sentencePiece[k.vocab]:
		return ">= 0.6"
	case k.phase == "load":
		return ""
	}
	return ">= 1.0"
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	if len(v) == 0 {
		return 0
	}
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

func medianRatio(a, b []float64) float64 {
	var out []float64
	for i := range min(len(a), len(b)) {
		out = append(out, a[i]/b[i])
	}
	return median(out)
}
