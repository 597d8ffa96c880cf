package pick

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/core/telemetry"
	"github.com/eppctl/eppctl/internal/core/view"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden cards")

// golden compares a card's drawing and its wire form with the files.
func golden(t *testing.T, name string, c *Card) {
	t.Helper()
	goldenWire(t, name, c.Explanation())
	goldenFile(t, name+".txt", c.String())
}

func goldenWire(t *testing.T, name string, x *Explanation) {
	t.Helper()
	wire, err := json.MarshalIndent(x, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	goldenFile(t, name+".json", string(wire)+"\n")
}

func goldenFile(t *testing.T, file, got string) {
	t.Helper()
	path := filepath.Join("testdata", "cards", file)
	if *rewrite {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; if that is right, run with -rewrite:\n%s", path, got)
	}
}

func TestGoldenCards(t *testing.T) {
	t.Run("warm against idle", func(t *testing.T) {
		f := newFleet(t, 3)
		f.policy = fixed(t)
		prompt := tokens(1, 4096)
		f.store(0, event.TierGPU, prompt, 0, 212)
		f.store(1, event.TierGPU, prompt, 0, 50)
		f.store(1, event.TierHost, prompt, 0, 100)
		for i, usage := range []float64{0.38, 0.19, 0.07} {
			f.Telemetry.Put(pod.ID(i), &telemetry.Sample{At: start - 300*ms, KVUsage: known(usage), Waiting: known(0)})
		}
		for _, p := range f.fill(f.pod(0), 8, 0) {
			p.FirstByte(start)
		}
		f.fill(f.pod(0), 2, 0.125)
		for _, p := range f.fill(f.pod(1), 6, 0) {
			p.FirstByte(start)
		}
		golden(t, "warm", f.decide(f.query(prompt, start)))
	})
	t.Run("tie of an idle fleet", func(t *testing.T) {
		f := newFleet(t, 4)
		golden(t, "tie", f.decide(f.query(tokens(1, 4096), start)))
	})
	t.Run("prompt not known", func(t *testing.T) {
		f := newFleet(t, 2)
		f.fill(f.pod(0), 2, 0.1)
		q := f.query(nil, start)
		q.PromptTokens, q.Unmatched = 1000, reason.TokenizeSlow
		golden(t, "unmatched", f.decide(q))
	})
	t.Run("every way a pod can be unwell", func(t *testing.T) {
		f := newFleet(t, 5)
		prompt := tokens(1, 2048)
		for m := range 5 {
			f.store(pod.Member(m), event.TierGPU, prompt, 0, 64)
		}
		f.Sync.Put(0, view.Sync{State: view.Gap, Why: reason.Missing, Missing: 4, Lost: 3, Since: start - 1200*ms, LastEvent: start - 900*ms, Connected: true})
		f.Telemetry.Put(1, &telemetry.Sample{At: start, Device: telemetry.Device{Known: true, Throttled: true}})
		f.Telemetry.Put(2, &telemetry.Sample{At: start, Device: telemetry.Device{Known: true, Critical: true}})
		f.Telemetry.Put(3, &telemetry.Sample{At: start - 3000*ms, Waiting: known(7)})
		f.Telemetry.Fail(4, "unexpected EOF", start)
		golden(t, "unwell", f.decide(f.query(prompt, start)))
	})
}

// The wire form says what the card says, row by row and term by term.
func TestExplanationIsTheCard(t *testing.T) {
	f := busyFleet(t, 24)
	c := f.decide(f.query(tokens(3, 2000), start))
	x := c.Explanation()
	if x.Pick.Pod == nil || *x.Pick.Pod != winner(c) || *x.Pick.Addr != c.WinnerRow().Pod.Target || *x.Pick.Margin != c.Margin {
		t.Errorf("pick %+v", x.Pick)
	}
	if *x.Pick.RunnerUp != c.Rows[c.RunnerUp].Pod.Spec.Name || x.Pods[0].Name != winner(c) {
		t.Errorf("runner-up %s, first %s", *x.Pick.RunnerUp, x.Pods[0].Name)
	}
	if len(x.Pods) != len(c.Rows) {
		t.Fatalf("%d pods, %d rows", len(x.Pods), len(c.Rows))
	}
	rows := map[string]*Row{}
	for i := range c.Rows {
		rows[c.Rows[i].Pod.Spec.Name] = &c.Rows[i]
	}
	for i, p := range x.Pods {
		r := rows[p.Name]
		if *p.Total != r.Total || *p.Rank != i+1 || p.Match.Depth != int(r.Match.Depth) || p.Match.Tokens != r.Cached || p.IndexState != r.Sync.State.String() || p.Missing != r.Sync.Missing {
			t.Errorf("%s: %+v", p.Name, p)
		}
		var names []string
		for k, term := range p.Terms {
			names = append(names, term.Name)
			if term.Seconds != r.Terms[k] {
				t.Errorf("%s: %s %v, row %v", p.Name, term.Name, term.Seconds, r.Terms[k])
			}
		}
		if !slices.Equal(names, TermNames()) {
			t.Errorf("%s: terms %v", p.Name, names)
		}
	}
}

// No list is null, and no number of the prompt is on the card.
func TestWireForm(t *testing.T) {
	f := busyFleet(t, 6)
	prompt := tokens(3, 2000)
	for i := range prompt {
		prompt[i] = 1_234_567_000 + uint32(i)
	}
	f.store(2, event.TierGPU, prompt, 0, 100)
	empty := newFleet(t, 0)
	for name, c := range map[string]*Card{
		"busy": f.decide(f.query(prompt, start)), "no pods": empty.decide(empty.query(nil, start)), "zero": f.decide(f.query(nil, 0)),
	} {
		wire, err := json.Marshal(c.Explanation())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, list := range []string{"pods", "terms", "order"} {
			if bytes.Contains(wire, []byte(`"`+list+`":null`)) {
				t.Errorf("%s: %s is null", name, list)
			}
		}
		if regexp.MustCompile(`12345670|12345[67]\d{4}`).Match(wire) || strings.Contains(fmt.Sprintf("%+v", c.Clone()), "1234567") {
			t.Errorf("%s: token ids in the card", name)
		}
		var back Explanation
		if err := json.Unmarshal(wire, &back); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCloneSharesNothing(t *testing.T) {
	f := busyFleet(t, 8)
	c := f.decide(f.query(tokens(3, 2000), start))
	keep, want := c.Clone(), c.String()
	v := f.View()
	Decide(&v, f.query(nil, start+5000*ms), f.policy, c)
	if keep.String() != want {
		t.Errorf("the clone changed:\n%s\n%s", want, keep)
	}
}

func TestOrderIsTotal(t *testing.T) {
	c := tiedCard("x", 0.5, 0.5, 0.7, 0.2, 0.5)
	c.Rows[3].Candidate = false
	c.Winner = 1
	if got := c.Order(nil); !slices.Equal(got, []int{1, 2, 0, 4}) {
		t.Errorf("order %v", got)
	}
	c.Winner = -1
	if got := c.Order([]int{9}); !slices.Equal(got, []int{9, 2, 0, 1, 4}) {
		t.Errorf("order without a winner %v", got)
	}
}

func TestBestIsTheHeadOfOrder(t *testing.T) {
	rnd := rand.New(rand.NewSource(1))
	for range 500 {
		c := &Card{Rows: make([]Row, rnd.Intn(12)), Winner: -1}
		for i := range c.Rows {
			c.Rows[i].Candidate, c.Rows[i].Total = rnd.Intn(4) > 0, float64(rnd.Intn(5))
			if c.Rows[i].Candidate && rnd.Intn(3) == 0 { // a tie's winner has not the highest total
				c.Winner = i
			}
		}
		order := c.Order(nil)
		for n := range 14 {
			want := order[:min(n, len(order))]
			if got := c.Best(n, []int{-7}); !slices.Equal(got[1:], want) || got[0] != -7 {
				t.Fatalf("best %d: %v, want %v", n, got, want)
			}
		}
	}
}
