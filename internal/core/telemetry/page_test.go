package telemetry

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/eppctl/eppctl/internal/testdata"
)

// newParser is the one place where a text parser is made: the zero value of
// expfmt.TextParser panics since prometheus/common 0.66. The UTF-8 scheme takes
// every name that the legacy scheme takes, colons included.
func newParser() expfmt.TextParser { return expfmt.NewTextParser(model.UTF8Validation) }

// fullParse is expfmt over the whole page.
func fullParse(text []byte) (map[string]*dto.MetricFamily, error) {
	p := newParser()
	return p.TextToMetricFamilies(bytes.NewReader(text))
}

// filteredParse is the slow twin of readPage: expfmt over the wanted lines. It
// takes no comments, for expfmt gives up on a second TYPE, and a bare LF behind
// each line, for it gives up on a CR and on a last line without an end.
func filteredParse(text []byte, want names) (map[string]*dto.MetricFamily, error) {
	return fullParse(wantedLines(text, want))
}

func wantedLines(text []byte, want names) (lines []byte) {
	for line := range bytes.Lines(text) {
		line = bytes.TrimRight(line, "\r\n")
		if written, _, _ := lineName(line); want[string(written)].own != "" {
			lines = append(append(lines, line...), '\n')
		}
	}
	return lines
}

// plain gives labels and value of each series of one family as expfmt has them,
// the last of equal label sets at the place of the first; nil for a histogram or
// summary, which has no number of ours.
func plain(ms []*dto.Metric) []string {
	out, at := []string{}, map[string]int{}
	for _, m := range ms {
		var value float64
		switch {
		case m.Gauge != nil:
			value = m.GetGauge().GetValue()
		case m.Counter != nil:
			value = m.GetCounter().GetValue()
		case m.Untyped != nil:
			value = m.GetUntyped().GetValue()
		default:
			return nil
		}
		var pairs []string
		for _, l := range m.GetLabel() {
			pairs = append(pairs, fmt.Sprintf("%q=%q", l.GetName(), l.GetValue()))
		}
		slices.Sort(pairs)
		key := strings.Join(pairs, ",")
		line := key + " " + strconv.FormatFloat(value, 'g', -1, 64)
		if i, ok := at[key]; ok {
			out[i] = line
			continue
		}
		at[key] = len(out)
		out = append(out, line)
	}
	return out
}

// plainly gives the same of a family of ours.
func plainly(f *family) []string {
	out := []string{}
	for _, s := range f.series {
		var pairs []string
		for rest := skipBlanks(s.labels); len(rest) > 0; {
			name, _, after, _ := cutLabel(rest)
			pairs = append(pairs, fmt.Sprintf("%q=%q", unescape(name), s.label(string(name))))
			rest = bytes.TrimLeft(after, " \t,")
		}
		slices.Sort(pairs)
		out = append(out, strings.Join(pairs, ",")+" "+strconv.FormatFloat(s.value, 'g', -1, 64))
	}
	return out
}

// sameAsExpfmt holds readPage against expfmt on one page: over the wanted lines
// both must agree on what is an error and on every series; and where expfmt
// reads the whole page, on the numbers of the wanted families.
func sameAsExpfmt(t *testing.T, text []byte, want names) {
	t.Helper()
	ours, err := readPage(text, want)
	short, expErr := filteredParse(text, want)
	if (err != nil) != (expErr != nil) {
		t.Fatalf("ours %v, expfmt %v", err, expErr)
	}
	if err != nil {
		return
	}
	for name := range ours {
		f := ours[name]
		if was, is := plain(short[f.name].GetMetric()), plainly(f); !slices.Equal(was, is) {
			t.Fatalf("%s:\n expfmt %q\n ours   %q", f.name, was, is)
		}
	}
	full, err := fullParse(text)
	for name, mf := range full {
		own := want[name].own
		if own == "" || plain(mf.GetMetric()) == nil {
			continue
		}
		if ours[own] == nil {
			t.Fatalf("%s is on the page and was not read", name)
		}
		if was, is := plain(mf.GetMetric()), plainly(ours[own]); err == nil && ours[own].name == name && !slices.Equal(was, is) {
			t.Fatalf("%s:\n the whole page %q\n ours           %q", name, was, is)
		}
	}
}

func TestPagesEqualExpfmt(t *testing.T) {
	for _, path := range promFiles(t) {
		text, _ := readGolden(t, path)
		if _, err := fullParse(text); err != nil {
			t.Errorf("%s: %v", pageName(path), err)
		}
		sameAsExpfmt(t, text, engineNames)
		sameAsExpfmt(t, text, dcgmNames)
	}
}

// midQuote is a quote in the middle of a name; braced a name in braces that
// stands behind a label; glued a name with something behind it that is neither
// blank nor brace, as in a+1, which expfmt takes for name and value.
var (
	midQuote = regexp.MustCompile(`(?m)^[^"\n]*(?:"(?:\\.|[^"\\\n])*"[^"\n]*)*[A-Za-z0-9_:]"`)
	glued    = regexp.MustCompile(`(?m)^[ \t]*[A-Za-z_:][A-Za-z0-9_:]*[^A-Za-z0-9_:{ \t\n]`)
	braced   = regexp.MustCompile(`(?m)^[ \t]*\{[ \t]*[^" \t]`)
)

// odd finds what only one of the two reads, none of which a program writes:
// besides those, more labels than we take, in which expfmt is quadratic.
func odd(text []byte) bool {
	for line := range bytes.Lines(text) {
		if bytes.Count(line, []byte(",")) >= maxLabels {
			return true
		}
	}
	return braced.Match(text) || midQuote.Match(text) || glued.Match(text)
}

// What a page may make Parse allocate: a line is kept once per series, with its
// labels, in slices that append doubles. Repeated lines cost nothing.
const (
	pageAllocFloor   = 64 << 10 // families, the Sample, and the fuzzing engine's own
	pageAllocPerByte = 32
)

// FuzzParsePage is the boundary of metrics pages: whatever the bytes, nothing
// panics or hangs, a Sample is sane, and expfmt agrees on every wanted line.
func FuzzParsePage(f *testing.F) {
	for _, path := range promFiles(f) {
		text, _ := readGolden(f, path)
		f.Add(text)
		f.Add(text[:len(text)/2])
		f.Add(bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n")))
		f.Add(bytes.ReplaceAll(text, []byte(":"), []byte("_")))
		f.Add(wantedLines(text, engineNames)) // short enough to be changed fast
	}
	for _, line := range oddLines {
		f.Add([]byte("vllm:num_requests_running 1\n" + line + "\nvllm:num_requests_running 2"))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var prev *Sample
		for _, o := range []ParseOptions{{}, {Rank: "1"}, {Model: "m"}} {
			o.Prev = prev
			var s *Sample
			var err error
			testdata.Bounded(t, uint64(pageAllocFloor+pageAllocPerByte*len(text)), func() { s, err = Parse(text, o) })
			if err != nil {
				continue
			}
			checkSane(t, s)
			s.Carry(prev, 1)
			s.Restarted(prev)
			prev = s
		}
		if g, err := ParseGPUs(text, nil, 1); err == nil {
			for i := range g {
				NewDevices(g).Of(strings.Join(g[i].Names(), ","))
			}
		}
		if odd(text) {
			return
		}
		sameAsExpfmt(t, text, engineNames)
		sameAsExpfmt(t, text, dcgmNames)
	})
}

// oddLines are sample lines at the edges of the format.
var oddLines = []string{
	`vllm:num_requests_waiting`, `vllm:num_requests_waiting `, "vllm:num_requests_waiting\t4", ` vllm:num_requests_waiting  4 17`,
	`vllm:num_requests_waiting 4 1.5`, `vllm:num_requests_waiting 4 -17`, `vllm:num_requests_waiting 4 `, `vllm:num_requests_waiting 4 17 `,
	`vllm:num_requests_waiting 1e999`, `vllm:num_requests_waiting 0x1p3`, `vllm:num_requests_waiting 1_0`, `vllm:num_requests_waiting nan`,
	`vllm:num_requests_waiting +Inf`, `vllm:num_requests_waiting -Inf`, `vllm:num_requests_waiting -0`, `vllm:num_requests_waiting 1,5`,
	`vllm:num_requests_waiting{}4`, `vllm:num_requests_waiting {} 4`, `vllm:num_requests_waiting{,} 4`, `vllm:num_requests_waiting{a="1",} 4`,
	`vllm:num_requests_waiting{a="1",,} 4`, `vllm:num_requests_waiting{a="1"b="2"} 4`, `vllm:num_requests_waiting{ a = "1" , b = "2" } 4`,
	`vllm:num_requests_waiting{a="1",a="2"} 4`, `vllm:num_requests_waiting{__name__="x"} 4`, `vllm:num_requests_waiting{1a="x"} 4`,
	`vllm:num_requests_waiting{a='x'} 4`, `vllm:num_requests_waiting{a="x} 4`, `vllm:num_requests_waiting{a="x\"} 4`, `vllm:num_requests_waiting{a="\\\n\""} 4`,
	`vllm:num_requests_waiting{a="\t"} 4`, "vllm:num_requests_waiting{a=\"\xff\"} 4", `vllm:num_requests_waiting{a="}",b=", x=\"1\""} 4`,
	`vllm:num_requests_waiting{"a.b"="1"} 4`, `vllm:num_requests_waiting{""="1"} 4`, `vllm:num_requests_waiting{"a"="1",a="2"} 4`,
	`{"vllm:num_requests_waiting",engine="0"} 4`, `{"vllm:num_requests_waiting"} 4`, `{ "vllm:num_requests_waiting" , } 4`,
	`{"vllm:num_requests_waiting" engine="0"} 4`, `{"vllm:num_requests_waiting"=“4”}`, `{"vllm:num_requests_waiting"`,
	`vllm:num_requests_waiting 4 # {trace_id="a"} 1`, `vllm:num_requests_waiting{a="1"} 4 1.7e9 # {trace_id="a"} 1`, `vllm:num_requests_waiting{a="1"} 4 # {} 1`,
	"vllm:num_requests_waiting+4", "vllm:num_requests_waiting\r4", "vllm:num_requests_waiting 4\r\r", "vllm:num_requests_waiting{a=\"x\r\"} 4", "vllm:num_requests_waiting\x00 4",
	"# TYPE vllm:num_requests_waiting gauge\n# EOF", "vllm:num_requests_waiting 4\n# EOF\nvllm:num_requests_waiting 5",
	"vllm_num_requests_waiting 3\nvllm:num_requests_waiting 4\nray_vllm_num_requests_waiting 5",
}

// TestOddLines: readPage and expfmt agree on each, or the line is one that only
// expfmt reads.
func TestOddLines(t *testing.T) {
	n := 0
	for _, line := range oddLines {
		text := []byte("vllm:num_requests_running 1\n" + line)
		if odd(text) {
			continue
		}
		n++
		t.Run(line, func(t *testing.T) { sameAsExpfmt(t, text, engineNames) })
	}
	if n < len(oddLines)-4 {
		t.Errorf("only %d of %d lines compared", n, len(oddLines))
	}
}

// TestEM39NoZeroParser reads every source file of the module: the zero value of
// expfmt.TextParser panics, so the type may be named only where the project's
// constructor returns it. expfmt's own constructor is safe to call.
func TestEM39NoZeroParser(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		t.Fatal(err)
	}
	var named []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil // for the compiler to judge
		}
		ast.Inspect(file, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok || s.Sel.Name != "TextParser" {
				return true
			}
			if x, ok := s.X.(*ast.Ident); ok && x.Name == "expfmt" {
				named = append(named, filepath.ToSlash(strings.TrimPrefix(path, root+string(filepath.Separator))))
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(named, []string{"internal/core/telemetry/page_test.go"}) {
		t.Errorf("expfmt.TextParser is named in %q, want newParser's result only", named)
	}
	p := newParser()
	if _, err := p.TextToMetricFamilies(strings.NewReader("a 1\n")); err != nil {
		t.Error(err)
	}
}
