package page

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/inspect/replay/fleet"
	"github.com/eppctl/eppctl/internal/inspect/replay/recorded"
	"github.com/eppctl/eppctl/internal/inspect/replay/workload"
)

func sample(policies int, speeds ...float64) *Report {
	r := &Report{Workload: `<script>"x"`, Stats: workload.Stats{Requests: 10, Seconds: 5}, Fleet: Fleet{Pods: 2, Profile: "p"}}
	for i := range policies {
		for k, s := range speeds {
			r.Runs = append(r.Runs, Run{
				Policy: fmt.Sprintf("p%d", i), Speed: s,
				Result: &fleet.Result{Policy: fmt.Sprintf("p%d", i), Mean: 0.1 * float64(i+1) * s, P90: float64(i) + s, P50: float64(k)},
			})
		}
	}
	return r
}

// The file is whole by itself, says nothing that its data could inject, and its
// picture is well-formed with a line per policy and a point per run.
func TestPage(t *testing.T) {
	var b bytes.Buffer
	r := sample(9, 1, 2, 4)
	if err := Write(&b, r); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	if strings.Contains(text, "<script") || strings.Contains(text, "http") || strings.Contains(text, "ZgotmplZ") {
		t.Error("the page fetches, runs or lost something")
	}
	pictures := regexp.MustCompile(`(?s)<svg.*?</svg>`).FindAllString(text, -1)
	if len(pictures) != 2 {
		t.Fatalf("%d charts", len(pictures))
	}
	for _, svg := range pictures {
		d := xml.NewDecoder(strings.NewReader(svg))
		count := map[string]int{}
		for {
			tok, err := d.Token()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if e, ok := tok.(xml.StartElement); ok {
				count[e.Name.Local]++
			}
		}
		if count["path"] != 9 || count["circle"] != 27 {
			t.Errorf("%d lines and %d points, want 9 and 27", count["path"], count["circle"])
		}
	}
	if n := strings.Count(text, `class="best"`); n != 3 {
		t.Errorf("%d best rows, want one per speed", n)
	}
	for _, want := range []string{"<td>p1</td><td>4, the highest run</td>", "<td>p4</td><td>1</td>", "<td>p8</td><td>none of those run</td>"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

// One speed makes a table and no chart.
func TestOneSpeed(t *testing.T) {
	var b bytes.Buffer
	if err := Write(&b, sample(3, 2)); err != nil || strings.Contains(b.String(), "<svg") || !strings.Contains(b.String(), "<td>p2</td>") {
		t.Errorf("%v\n%s", err, &b)
	}
}

// Charts stay within their frame and names apart, whatever the values are.
func TestChartBounds(t *testing.T) {
	for _, v := range []float64{0, 1e-9, 0.3, 5, 1e6} {
		r := sample(12, 1, 3)
		c := r.chart("x", 5, func(x *Run) float64 { return v })
		for i, l := range c.Lines {
			for _, p := range l.Points {
				if p.X < left || p.X > width-right || p.Y < top-1 || p.Y > height-bottom+1 || math.IsNaN(p.Y) {
					t.Fatalf("value %v: point %+v is outside", v, p)
				}
			}
			for _, m := range c.Lines[:i] {
				if math.Abs(l.LabelY-m.LabelY) < labelGap-0.01 {
					t.Fatalf("names %s and %s overlap", l.Name, m.Name)
				}
			}
		}
	}
}

// Whatever is between the least and the greatest value, an axis has some labels and
// room between them.
func TestTicks(t *testing.T) {
	for lo := 0.001; lo < 100; lo *= 1.07 {
		for factor := 1.44; factor < 1e6; factor *= 1.3 {
			s := scale{lo: lo, hi: lo * factor, from: height - bottom, to: top, log: true}
			if list := s.ticks(); len(list) < 2 || !s.apart(list) {
				t.Fatalf("%g to %g: ticks at %v", lo, lo*factor, list)
			}
		}
	}
}

// The load that is too much is marked where a policy comes to it, and else the
// chart's room belongs to the lines.
func TestLimitIsShownWhereItIsPassed(t *testing.T) {
	r := sample(3, 1, 2)
	for value, want := range map[float64]bool{0.5: false, 6: true} {
		if c := r.chart("x", 5, func(*Run) float64 { return value }); (c.Limit != nil) != want {
			t.Errorf("values of %g s: limit %v", value, c.Limit)
		}
	}
}

// What was observed and what a recording cannot tell stand above the runs, and each
// run says how many decisions it would have changed, or that nobody knows.
func TestPageOfDecisions(t *testing.T) {
	r := sample(2, 1)
	r.Observed = &recorded.Observed{Requests: 90, Streamed: 80, Mean: 0.25, P50: 0.2, P90: 0.9, Hit: 0.5}
	r.Notes = []string{"<b>7</b> requests were refused"}
	r.Runs[1].Changed = &Changed{Decisions: 12.5, Of: 50}
	var b bytes.Buffer
	if err := Write(&b, r); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for _, want := range []string{"mean time to first token 250 ms", "80 of 90 requests", "&lt;b&gt;7&lt;/b&gt; requests", "decisions changed", "<td>25.0 %</td></tr>", "<td>-</td></tr>"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	b.Reset()
	if err := Write(&b, sample(2, 1)); err != nil || strings.Contains(b.String(), "bserved") {
		t.Errorf("%v: a trace was observed", err)
	}
}
