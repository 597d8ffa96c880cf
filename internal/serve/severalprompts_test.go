package serve

import (
	"context"
	"encoding/json"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/eppctl/eppctl/internal/core/block"
	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/tokenizer"
)

// lists is a body of /v1/completions with several prompts.
func lists(prompts ...[]uint32) []byte {
	b, err := json.Marshal(map[string]any{"model": "m", "prompt": prompts, "max_tokens": 4})
	if err != nil {
		panic(err)
	}
	return b
}

// spelled gives the ids of texts that are the numbers of prompts.
type spelled map[string][]uint32

func (spelled) Name() string { return "spelled" }

func (s spelled) Tokenize(_ context.Context, t tokenizer.Text) (res tokenizer.Result, err error) {
	var body struct{ Prompt []string }
	err = json.Unmarshal(t.Body, &body)
	for i, text := range body.Prompt {
		if i == 0 {
			res.IDs = s[text]
		} else {
			res.Further = append(res.Further, s[text])
		}
	}
	res.Status, res.Cut = tokenizer.Exact, -1
	return res, err
}

// A request of several prompts goes where they find most together, whichever of them it
// is, and whoever told their ids.
func TestSeveralPrompts(t *testing.T) {
	unknown, known, other := ids(1, 100), ids(2, 128), ids(3, 90)
	two := []pod.Spec{
		{Name: "a", Address: "10.0.0.1:8000", Model: "m", Engine: pod.EngineVLLM},
		{Name: "b", Address: "10.0.0.2:8000", Model: "m", Engine: pod.EngineVLLM},
	}
	for what, body := range map[string][]byte{
		"ids":   lists(unknown, known, other),
		"texts": []byte(`{"model":"m","prompt":["unknown","known","other"]}`),
	} {
		for _, holder := range []string{"a", "b"} {
			r := newRig(t, rigOptions{pods: two, provider: spelled{"unknown": unknown, "known": known, "other": other}})
			r.cache(holder, 0, known)
			r.cache(holder, 0, other[:32])
			var x pick.Explanation
			w := r.admin("POST", "/v1/explain?tokens=1&path="+completionsPath, string(body))
			if err := json.Unmarshal(w.Body.Bytes(), &x); err != nil || w.Code != 200 {
				t.Fatalf("%d %v %s", w.Code, err, w.Body)
			}
			if x.Tokens != 318 || !x.TokensExact || x.Prompts != 3 || *x.Tokenizer.Status != "exact" || *x.Pick.Pod != holder {
				t.Errorf("%s on %s: %+v", what, holder, x)
			}
			if p := x.Prompt; p == nil || !reflect.DeepEqual(append([][]uint32{p.IDs}, p.Further...), [][]uint32{unknown, known, other}) || *p.BlockSize != blockSize {
				t.Errorf("%s on %s: %+v", what, holder, p)
			}
			// Seven of eight blocks, since the last token is computed, and two.
			if m := x.Pods[0].Match; m.Tokens != 9*blockSize || m.GPU != 9 || m.Depth != 9 {
				t.Errorf("%s on %s: %+v", what, holder, m)
			}
			want := r.pod(holder).Target
			if got := destination(t, r.ask(reqHeaders(fullDuplex, false, completionsPath), reqBody(body, true))[0]); got != want {
				t.Errorf("%s: sent to %s, %s has it", what, got, want)
			}
		}
	}
}

// While a request is under way all of its prompts are expected where it went, and none
// once it is given up.
func TestSeveralPromptsAreExpected(t *testing.T) {
	r := newRig(t, rigOptions{})
	c := r.talk()
	c.send(reqHeaders(fullDuplex, false, completionsPath), reqBody(lists(ids(1, 200), ids(2, 200), ids(3, 60)), true))
	to := destination(t, c.recv())
	expected := func() (there, elsewhere int) {
		for _, p := range r.fleet.Pods.Snapshot().Pods {
			s, _ := r.fleet.Index.Member(p.Members[0])
			if p.Target == to {
				there = s.Expectations
			} else {
				elsewhere += s.Expectations
			}
		}
		return there, elsewhere
	}
	if there, elsewhere := expected(); there != 3 || elsewhere != 0 {
		t.Errorf("%d prompts expected where the request went, %d elsewhere", there, elsewhere)
	}
	c.rest()
	waitFor(t, "nothing is expected", func() bool { there, _ := expected(); return there == 0 })
}

// A recording has the hashes of the first prompt and the tokens of all.
func TestSeveralPromptsRecorded(t *testing.T) {
	r := newRig(t, rigOptions{})
	path := filepath.Join(t.TempDir(), "decisions")
	end := r.record(path, nil)
	r.ask(reqHeaders(fullDuplex, false, completionsPath), reqBody(lists(ids(1, 100), ids(2, 50)), true))
	end()
	got := readRecordedFile(t, path)
	if len(got.decisions) != 1 || got.decisions[0].Tokens != 150 || len(got.decisions[0].Blocks) != 6 {
		t.Errorf("%+v", got.decisions)
	}
}

// What an engine announces of several prompts is not compared with their ids.
func TestSeveralPromptsAreNotCompared(t *testing.T) {
	c := &parityCheck{}
	q := &pick.Query{Base: "m", Origin: pick.Origin{Provider: byNative}, Prompt: block.Prompt{Tokens: ids(1, 100), Cut: -1}}
	q.Further = []block.Prompt{q.Prompt}
	if w := c.routed(&pick.Card{}, q); w != nil {
		t.Error("compared")
	}
}
