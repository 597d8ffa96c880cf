package workload

import (
	"bytes"
	"compress/gzip"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/testdata"
)

func open(t *testing.T, name string) *Workload {
	t.Helper()
	f, err := os.Open(filepath.Join(testdata.Dirs(t, "traces")[0], name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w, err := Read(name, f, 0)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// What is known of the traces' contents is what is read from them.
func TestTraces(t *testing.T) {
	s := open(t, "mooncake_conversation_trace.jsonl.gz").Stats()
	if s.Requests != 12_031 || s.BlockRefs != 288_500 || s.Blocks != 182_790 || math.Round(s.Prompt) != 12_035 || math.Round(s.Output) != 343 {
		t.Errorf("conversation: %+v", s)
	}
	if math.Abs(s.IdealHit-0.3664) > 5e-5 || math.Round(s.Seconds) != 3537 {
		t.Errorf("conversation: ideal hit %v over %v s, want 0.3664 over 3537", s.IdealHit, s.Seconds)
	}
	s = open(t, "azure_llm_2023_code.csv.gz").Stats()
	if s.Requests != 8819 || math.Round(s.Prompt) != 2048 || math.Abs(s.Output-27.9) > 0.05 || s.IdealHit != 0 || math.Abs(s.Seconds-3436) > 1 {
		t.Errorf("code: %+v", s)
	}
}

const bailian = `{"chat_id": 159, "parent_chat_id": -1, "timestamp": 61.114, "input_length": 40, "output_length": 51, "type": "text", "turn": 1, "hash_ids": [10, 11, 12]}
{"chat_id": 160, "parent_chat_id": 159, "timestamp": 64.5, "input_length": 56, "output_length": 0, "type": "text", "turn": 2, "hash_ids": [10, 11, 13, 14]}

{"chat_id": 161, "parent_chat_id": -1, "timestamp": 63, "input_length": 30, "output_length": 1, "type": "text", "turn": 1, "hash_ids": [20, 11]}
`

// Seconds and blocks of 16, in order of time; an id behind another beginning is
// another block.
func TestBailian(t *testing.T) {
	w, err := Read("x", strings.NewReader(bailian), 0)
	if err != nil {
		t.Fatal(err)
	}
	begin := 61.114
	want := []Request{
		{At: 0, Prompt: 40, Output: 51, Blocks: []uint32{0, 1, 2}},
		{At: 63 - begin, Prompt: 30, Output: 1, Blocks: []uint32{5, 6}},
		{At: 64.5 - begin, Prompt: 56, Output: 1, Blocks: []uint32{0, 1, 3, 4}},
	}
	if w.BlockSize != 16 || w.Distinct != 7 || !reflect.DeepEqual(w.Requests, want) {
		t.Errorf("blocks of %d, %d distinct: %+v", w.BlockSize, w.Distinct, w.Requests)
	}
	if h := w.Head(1); len(h.Requests) != 1 || len(w.Requests) != 3 {
		t.Errorf("head has %d", len(h.Requests))
	}
}

// A row that cannot be used is named by its line, with what is wrong and what would
// be right.
func TestBadRows(t *testing.T) {
	moon := `{"timestamp": 0, "input_length": 600, "output_length": 5, "hash_ids": [1, 2]}` + "\n"
	csv := "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,4808,10\n"
	for _, c := range []struct{ text, want string }{
		{"a,b\n", "line 1: no known trace begins like this; known are azure, bailian, mooncake"},
		{moon + "{\n", "line 2: no JSON object"},
		{moon + `{"timestamp": 0, "input_length": 1, "hash_ids": []}`, "line 2: output_length is missing"},
		{moon + `{"timestamp": -1, "input_length": 1, "output_length": 1}`, "line 2: timestamp is -1"},
		{moon + `{"timestamp": 0, "input_length": -1, "output_length": 1}`, "line 2: input_length is -1, below 0"},
		{moon + `{"timestamp": 0, "input_length": 99999999, "output_length": 1}`, "line 2: input_length is 99999999, above"},
		{moon + `{"timestamp": 0, "input_length": 512, "output_length": 1, "hash_ids": [1, 2]}`, "line 2: 2 hash_ids for 512 tokens, which fill 1 blocks of 512"},
		{moon + `{"timestamp": 0, "input_length": 512, "output_length": 1, "hash_ids": [-2]}`, "line 2: no JSON object"},
		{csv + "2023-11-16 18:17:04,1\n", "line 3: 2 cells; expected TIMESTAMP"},
		{csv + "yesterday,1,2\n", `line 3: TIMESTAMP "yesterday" is not a time`},
		{csv + "2023-11-16 18:17:04,x,2\n", `line 3: ContextTokens "x" is not a whole number`},
		{csv + "2053-11-16 18:17:04,1,2\n", "line 3: TIMESTAMP is more than ten years"},
		{moon + strings.Repeat("x", maxLine+1), "line 2: longer than"},
	} {
		_, err := Read("t", strings.NewReader(c.text), 0)
		var at *LineError
		if !errors.As(err, &at) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60q: %v, want %q", c.text, err, c.want)
		}
	}
	if _, err := Read("t", strings.NewReader("\n\n"), 0); err == nil || !strings.Contains(err.Error(), "no requests") {
		t.Errorf("an empty file: %v", err)
	}
	if w, err := Read("t", strings.NewReader(moon+"{\n"), 1); err != nil || len(w.Requests) != 1 {
		t.Errorf("one of two rows: %v", err)
	}
}

// A file of which nothing is left when it is unpacked is told as such.
func TestBrokenGzip(t *testing.T) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write([]byte(strings.Repeat(bailian, 50)))
	z.Close()
	if _, err := Read("t", bytes.NewReader(b.Bytes()[:b.Len()/2]), 0); err == nil {
		t.Error("half a gzip file was accepted")
	}
	if w, err := Read("t", bytes.NewReader(b.Bytes()), 0); err != nil || len(w.Requests) != 150 {
		t.Errorf("whole: %v", err)
	}
}

// Requests of one time are spread up to the next, and the order stays.
func TestSpread(t *testing.T) {
	w := &Workload{Requests: []Request{{At: 0}, {At: 0}, {At: 0}, {At: 3}, {At: 6}, {At: 6}}}
	a := w.Spread(1)
	if !slices.IsSorted(a) || a[2] >= 3 || a[3] != 3 || a[4] < 6 || a[5] > 9 || a[0] == a[1] {
		t.Errorf("spread to %v", a)
	}
	if !slices.Equal(a, w.Spread(1)) || slices.Equal(a, w.Spread(2)) {
		t.Error("the seed does not decide")
	}
}

// The generators make what is known of them, and the same again.
func TestGenerators(t *testing.T) {
	for _, c := range []struct {
		name           string
		set            Parameters
		requests       int
		prompt, output float64
		ideal          float64
	}{
		{"tool", nil, 23_608, 9274, 162, 0.608},
		{"tool", Parameters{"zipf": 1.8}, 23_608, 10_988, 162, 0.668},
		{"hot", nil, 23_608, 10_988, 162, 0.668},
		{"b2b", nil, 0, 7200, 1000, 0},
		{"agent", nil, 6000, 0, 0, 0},
		{"shared_prefix", Parameters{"num_groups": 5, "num_prompts_per_group": 7, "system_prompt_len": 1024, "question_len": 100, "output_len": 9}, 35, 1124, 9, 1 - (5*2+35)/(35*3.0)},
		{"multi_turn", Parameters{"num_groups": 2, "num_prompts_per_group": 3, "num_turns": 4, "system_prompt_len": 512, "question_len": 412, "output_len": 100}, 24, 924 + 1.5*512, 100, 0},
	} {
		w, err := Generate(c.name, 1, c.set)
		if err != nil {
			t.Fatal(err)
		}
		s := w.Stats()
		if c.requests > 0 && s.Requests != c.requests || c.prompt > 0 && math.Abs(s.Prompt-c.prompt) > 1 || c.output > 0 && math.Abs(s.Output-c.output) > 1 {
			t.Errorf("%s %v: %+v", c.name, c.set, s)
		}
		if c.ideal > 0 && math.Abs(s.IdealHit-c.ideal) > 6e-4 {
			t.Errorf("%s: ideal hit %v, want %v", c.name, s.IdealHit, c.ideal)
		}
		again, _ := Generate(c.name, 1, c.set)
		other, _ := Generate(c.name, 2, c.set)
		if !reflect.DeepEqual(w, again) || reflect.DeepEqual(w.Requests, other.Requests) {
			t.Errorf("%s: the seed does not decide", c.name)
		}
		sound(t, w)
	}
}

// sound checks what every workload promises.
func sound(t *testing.T, w *Workload) {
	t.Helper()
	last := 0.0
	for i, r := range w.Requests {
		if r.At < last || r.Prompt < 1 || r.Output < 1 || len(r.Blocks) != blocksOf(r.Prompt, w.BlockSize) {
			t.Fatalf("%s: request %d: %+v", w.Name, i, r)
		}
		last = r.At
		for _, b := range r.Blocks {
			if int(b) >= w.Distinct {
				t.Fatalf("%s: block %d of %d", w.Name, b, w.Distinct)
			}
		}
	}
}

// Turns of a session share what came before, and only whole blocks of it.
func TestTurnsGrow(t *testing.T) {
	w, err := Generate("multi_turn", 1, Parameters{
		"num_groups": 1, "num_prompts_per_group": 1, "num_turns": 3, "system_prompt_len": 600, "question_len": 100, "output_len": 50,
	})
	if err != nil {
		t.Fatal(err)
	}
	var prompts []int
	for _, r := range w.Requests {
		prompts = append(prompts, r.Prompt)
	}
	if !slices.Equal(prompts, []int{700, 850, 1000}) {
		t.Errorf("prompts %v", prompts)
	}
	a, b := w.Requests[0].Blocks, w.Requests[1].Blocks
	if a[0] != b[0] || a[1] == b[1] {
		t.Errorf("blocks %v and %v, want the first alone shared", a, b)
	}
}

func TestBadParameters(t *testing.T) {
	for _, c := range []struct {
		name string
		set  Parameters
		want string
	}{
		{"x", nil, "want one of tool"},
		{"tool", Parameters{"zpif": 1}, `no parameter "zpif"; did you mean zipf?`},
		{"tool", Parameters{"x": 1}, `no parameter "x"; it has `},
		{"tool", Parameters{"zipf": math.NaN()}, "want a number from 0"},
		{"tool", Parameters{"rate": 1e-300}, "more than ten years"},
		{"agent", Parameters{"think_min": 1e9, "requests": 50}, "more than ten years"},
		{"tool", Parameters{"rate": 0}, "rate=0: want a number above 0"},
		{"tool", Parameters{"requests": 0}, "make no request"},
		{"shared_prefix", Parameters{"num_groups": 1e5, "num_prompts_per_group": 1e5}, "want at most 1000000"},
		{"shared_prefix", Parameters{"question_len": 1e9}, "question_len=1e+09: want at most"},
		{"b2b", Parameters{"seconds": 1e5, "rate_to": 1e4}, "requests: want at most"},
		{"agent", Parameters{"turns_min": 30}, "turns_min=30: want at most turns_max=20"},
	} {
		if _, err := Generate(c.name, 1, c.set); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %v: %v, want %q", c.name, c.set, err, c.want)
		}
	}
}

// Generators come to an end, and what they make is sound, whichever two of their
// parameters are 0.
func TestGeneratorsOfNothing(t *testing.T) {
	for _, g := range generators {
		for a := range g.defaults {
			for b := range g.defaults {
				set := Parameters{}
				for few, n := range map[string]float64{"requests": 40, "seconds": 4, "num_groups": 3, "num_prompts_per_group": 4} {
					if _, has := g.defaults[few]; has {
						set[few] = n
					}
				}
				set[a], set[b] = 0, 0
				if w, err := Generate(g.name, 1, set); err == nil {
					sound(t, w)
				}
			}
		}
	}
}

// Adapters keep blocks apart.
func TestAdapters(t *testing.T) {
	w := &Workload{BlockSize: 4, Distinct: 2}
	for range 400 {
		w.Requests = append(w.Requests, Request{Prompt: 8, Output: 1, Blocks: []uint32{0, 1}})
	}
	mixed := w.WithAdapters(3, 1, 1)
	at, count := map[uint32]string{}, map[string]int{}
	for _, r := range mixed.Requests {
		count[r.Adapter]++
		for _, b := range r.Blocks {
			if was, ok := at[b]; ok && was != r.Adapter {
				t.Fatalf("block %d is of %q and %q", b, was, r.Adapter)
			}
			at[b] = r.Adapter
		}
	}
	if mixed.Distinct != 6 || len(at) != 6 || count["adapter-0"] <= count["adapter-2"] || w.Requests[0].Adapter != "" {
		t.Errorf("%d distinct, %v", mixed.Distinct, count)
	}
}
