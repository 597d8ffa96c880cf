package recording_test

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/core/recording"
)

func pointer[T any](v T) *T { return &v }

func fleet() *recording.Fleet {
	return &recording.Fleet{
		Run: "r1", Pods: []recording.FleetPod{{Name: "a", BlockSize: 16, PoolTokens: 1000}, {Name: "b"}},
		Terms: []string{"kv", "queue"}, Weights: map[string]float64{"alpha": 1}, BlockTokens: 16, ScrapeMs: 250,
	}
}

func decision() *recording.Decision {
	return &recording.Decision{
		N: 7, PickID: "p-7", Request: "00ff", Model: "m", Tokens: 40, Exact: true, Blocks: recording.Hashes{1, math.MaxUint64},
		Picked: 1, Cached: 16, Scores: recording.Scores{0.5, -1, float32(math.Inf(1)), 0},
	}
}

func outcome() *recording.Outcome {
	return &recording.Outcome{N: 7, Status: 200, FirstMs: pointer(12.5), TookMs: 80, Prompt: pointer(40), Output: pointer(0)}
}

func body(t testing.TB, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestDecisionRoundTrip(t *testing.T) {
	f, err := recording.ParseFleet(body(t, fleet()))
	if err != nil || !reflect.DeepEqual(f, fleet()) {
		t.Errorf("%+v, %v", f, err)
	}
	d, err := recording.ParseDecision(body(t, decision()), fleet())
	if err != nil || !reflect.DeepEqual(d, decision()) {
		t.Errorf("%+v, %v", d, err)
	}
	o, err := recording.ParseOutcome(body(t, outcome()))
	if err != nil || !reflect.DeepEqual(o, outcome()) {
		t.Errorf("%+v, %v", o, err)
	}
	none := &recording.Decision{Scores: recording.Scores{float32(math.NaN()), 0, 1, 2}}
	if d, err = recording.ParseDecision(body(t, none), fleet()); err != nil || d.Scores[0] == d.Scores[0] {
		t.Errorf("%+v, %v: a pod that is no candidate has NaN", d, err)
	}
}

// A decision that does not fit its fleet, or is larger than any, is refused, and the
// message says what was found.
func TestDecisionRefused(t *testing.T) {
	for want, change := range map[string]func(*recording.Decision){
		"-1 tokens":           func(d *recording.Decision) { d.Tokens = -1 },
		"2 blocks of 16":      func(d *recording.Decision) { d.Tokens = 31 },
		"pod 2 of a fleet":    func(d *recording.Decision) { d.Picked = 2 },
		"pod -2":              func(d *recording.Decision) { d.Picked = -2 },
		"3 scores":            func(d *recording.Decision) { d.Scores = d.Scores[:3] },
		"a name of more than": func(d *recording.Decision) { d.Model = strings.Repeat("m", 5000) },
	} {
		d := decision()
		change(d)
		if _, err := recording.ParseDecision(body(t, d), fleet()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	for want, change := range map[string]func(*recording.Fleet){
		"0 pods":           func(f *recording.Fleet) { f.Pods = nil },
		"0 terms":          func(f *recording.Fleet) { f.Terms = nil },
		"blocks of 0":      func(f *recording.Fleet) { f.BlockTokens = 0 },
		"a pool of -1":     func(f *recording.Fleet) { f.Pods[0].PoolTokens = -1 },
		"interval of -1":   func(f *recording.Fleet) { f.ScrapeMs = -1 },
		"expected at most": func(f *recording.Fleet) { f.Run = strings.Repeat("r", 5<<20) },
	} {
		f := fleet()
		change(f)
		if _, err := recording.ParseFleet(body(t, f)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	for _, text := range []string{
		`{"took_ms":-1}`, `{"took_ms":1e300}`, `{"first_ms":-1}`, `{"output_tokens":-1}`, `[]`, ``,
	} {
		if o, err := recording.ParseOutcome([]byte(text)); err == nil {
			t.Errorf("%s: %+v", text, o)
		}
	}
	for _, text := range []string{`{"blocks":"AAAA"}`, `{"blocks":"*"}`, `{"scores":"AAA="}`, `{"blocks":[1]}`} {
		if d, err := recording.ParseDecision([]byte(text), fleet()); err == nil {
			t.Errorf("%s: %+v", text, d)
		}
	}
}

// FuzzDecision: no bytes bring the parsers down, and what they let through keeps to
// the caps that its users count on.
func FuzzDecision(f *testing.F) {
	f.Add(body(f, fleet()))
	f.Add(body(f, decision()))
	f.Add(body(f, outcome()))
	f.Add([]byte(`{"n":1,"tokens":16,"blocks":"AAAAAAAAAAA=","picked":-1,"status":503}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		of, err := recording.ParseFleet(b)
		if err != nil {
			of = fleet()
		}
		if d, err := recording.ParseDecision(b, of); err == nil {
			if len(d.Blocks)*of.BlockTokens > d.Tokens || d.Picked >= len(of.Pods) || len(d.Scores) > len(of.Pods)*len(of.Terms) {
				t.Errorf("%+v of %+v", d, of)
			}
		}
		var h recording.Hashes
		if err := h.UnmarshalText(b); err == nil && len(h) > recording.MaxBlocks {
			t.Errorf("%d hashes", len(h))
		}
		var s recording.Scores
		if err := s.UnmarshalText(b); err == nil && 4*len(s) > len(b) {
			t.Errorf("%d scores of %d bytes", len(s), len(b))
		}
		if o, err := recording.ParseOutcome(b); err == nil && !(o.TookMs >= 0) {
			t.Errorf("%+v", o)
		}
	})
}
