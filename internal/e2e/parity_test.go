package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/parity"
	"github.com/eppctl/eppctl/internal/core/tokenizer"
	"github.com/eppctl/eppctl/internal/core/view"
	"github.com/eppctl/eppctl/internal/modelsource"
	"github.com/eppctl/eppctl/internal/sim"
	"github.com/eppctl/eppctl/internal/testdata"
)

// realEncoder makes an engine's ids by the captures' model, of bodies with wrong in
// them with one id changed.
type realEncoder struct {
	*modelsource.Model
	wrong string // "" = of none
}

func (r *realEncoder) Tokenize(ctx context.Context, t tokenizer.Text) (tokenizer.Result, error) {
	res, err := r.Model.Tokenize(ctx, t)
	if err == nil && r.wrong != "" && bytes.Contains(t.Body, []byte(r.wrong)) {
		res.IDs[len(res.IDs)/2]++
	}
	return res, err
}

// withModel is a fleet whose engines and picker have the same tokenizer, but for what
// the engines do to bodies that have wrong in them.
func withModel(t *testing.T, wrong string, noTokenize bool) setup {
	t.Helper()
	folder, err := filepath.Abs(filepath.Join(testdata.Dirs(t, "engines")[0], "models", "tiny-llama"))
	if err != nil {
		t.Fatal(err)
	}
	place, err := (&modelsource.Settings{}).Find(t.Context(), folder, "")
	if err != nil {
		t.Fatal(err)
	}
	m, err := place.Load(modelsource.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return setup{fleet: sim.FleetOptions{Engines: 2, Engine: sim.EngineOptions{Tokenizer: folder, Encoder: &realEncoder{m, wrong}, NoTokenize: noTokenize}}}
}

// parity is what serve knows of its native ids.
func (s *stack) parity() view.Parity {
	s.t.Helper()
	var st view.Snapshot
	if err := json.Unmarshal(s.admin("GET", "/v1/state", nil), &st); err != nil {
		s.t.Fatal(err)
	}
	for _, m := range st.Tokenizers {
		for _, p := range m.Providers {
			if p.Parity != nil {
				return *p.Parity
			}
		}
	}
	return view.Parity{}
}

// becomes waits for a state.
func (s *stack) becomes(what string, is func(*view.Parity) bool) view.Parity {
	s.t.Helper()
	var p view.Parity
	eventually(s.t, func() error {
		if p = s.parity(); !is(&p) {
			return fmt.Errorf("not %s: %+v", what, p)
		}
		return nil
	})
	return p
}

func chatOf(i int) []byte {
	words := make([]string, 0, 120)
	for j := range 120 {
		words = append(words, fmt.Sprintf("word%d", (i+1)*(j+7)))
	}
	b, _ := json.Marshal(map[string]any{"model": "sim", "max_tokens": 2, "messages": []map[string]string{{"role": "user", "content": strings.Join(words, " ")}}})
	return b
}

// toldStatus is the claim about the ids of a chat, and what explain says of parity.
func (s *stack) toldStatus(body []byte) (status string, p *view.Parity) {
	s.t.Helper()
	var x struct {
		Tokenizer struct {
			Provider, Status string
			Parity           *view.Parity
		}
	}
	if err := json.Unmarshal(s.admin("POST", "/v1/explain?path=/v1/chat/completions", body), &x); err != nil {
		s.t.Fatal(err)
	}
	if x.Tokenizer.Provider != "native" {
		s.t.Errorf("ids by %q", x.Tokenizer.Provider)
	}
	return x.Tokenizer.Status, x.Tokenizer.Parity
}

// Engines with the same tokenizer: all probes are equal, ids are exact, and events of
// routed requests agree.
func TestParityOfEqualIDs(t *testing.T) {
	s := start(t, withModel(t, "", false))
	p := s.becomes("passed", func(p *view.Parity) bool { return p.State == "passed" })
	if n := len(parity.Probes()); p.Compared != n || p.Differed != 0 {
		t.Errorf("%d of %d probes compared: %+v", p.Compared, n, p)
	}
	if status, p := s.toldStatus(chatOf(0)); status != "exact" || p == nil || p.State != "passed" {
		t.Errorf("ids are %q, parity %+v", status, p)
	}
	for i := range 8 {
		s.must(s.call(t.Context(), "POST", "/v1/chat/completions", chatOf(i)))
	}
	// The first requests of an engine tell the size of its blocks.
	p = s.becomes("compared by events", func(p *view.Parity) bool { return p.Requests.Equal >= 1 })
	if p.Requests.Differs+p.Requests.Unseen > 0 || p.State != "passed" {
		t.Errorf("false alarm: %+v", p)
	}
}

// TK-50: an engine that makes one other id of one probe.
func TestParityOfOneOtherID(t *testing.T) {
	s := start(t, withModel(t, "Donaudampfschiff", false))
	p := s.becomes("failed", func(p *view.Parity) bool { return p.State == "failed" })
	if p.String() != fmt.Sprintf("failed(1 of %d)", len(parity.Probes())) || p.Why != "parity-probe-differs" || !strings.Contains(p.Detail, `"long word"`) {
		t.Errorf("%s: %+v", p.String(), p)
	}
	if status, _ := s.toldStatus(chatOf(0)); status != "unverified" {
		t.Errorf("ids are %q", status)
	}
}

// Engines without /tokenize are asked by requests that they compute, where that is
// switched on; one other id is found so too.
func TestParityByGenerating(t *testing.T) {
	for wrong, state := range map[string]string{"": "passed", "Donaudampfschiff": "failed"} {
		o := withModel(t, wrong, true)
		o.fleet.Engine.Generates = true
		p := start(t, o).becomes(state, func(p *view.Parity) bool { return p.State == state })
		if p.Compared != len(parity.Probes()) || p.Differed != min(len(wrong), 1) {
			t.Errorf("%+v", p)
		}
	}
}

// TK-51: nobody can be asked, and what the engines announce of routed chats has other
// ids.
func TestParityOfOtherEvents(t *testing.T) {
	s := start(t, withModel(t, "messages", true))
	for i := range 24 {
		s.must(s.call(t.Context(), "POST", "/v1/chat/completions", chatOf(i)))
		if s.parity().State == "failed" {
			break
		}
		time.Sleep(300 * time.Millisecond) // no more than a few are watched at a time
	}
	p := s.becomes("failed", func(p *view.Parity) bool { return p.State == "failed" })
	if p.Why != "parity-events-differ" || p.Requests.Differs < 3 || p.Requests.Equal > 0 {
		t.Errorf("%+v", p)
	}
}
