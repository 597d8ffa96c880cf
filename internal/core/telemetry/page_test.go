package telemetry

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
)

// fullParse is the slow twin of readPage: expfmt over the whole page.
func fullParse(text []byte) (map[string]*dto.MetricFamily, error) {
	p := newParser()
	return p.TextToMetricFamilies(bytes.NewReader(text))
}

// plain gives name, labels and value of each series, whatever its type.
func plain(ms []*dto.Metric) (out []string) {
	for _, m := range ms {
		u := m.GetUntyped()
		switch {
		case m.GetGauge() != nil:
			u = &dto.Untyped{Value: m.GetGauge().Value}
		case m.GetCounter() != nil:
			u = &dto.Untyped{Value: m.GetCounter().Value}
		}
		if u == nil {
			return nil // a histogram or summary: no number of ours
		}
		out = append(out, labelKey(m)+" "+(&dto.Metric{Untyped: u}).String())
	}
	return out
}

// sameAsFull compares the filtered parse of a page with the full one.
func sameAsFull(t *testing.T, text []byte) {
	t.Helper()
	full, err := fullParse(text)
	if err != nil {
		return // the filter is there to read on where expfmt gives up
	}
	for _, want := range []map[string]bool{engineWants, dcgmWants} {
		p := newParser()
		short, err := p.TextToMetricFamilies(bytes.NewReader(filter(text, want)))
		if err != nil {
			t.Fatalf("the full page parses, the filtered one does not: %v", err)
		}
		for name, mf := range full {
			if !want[canonical(name)] {
				continue
			}
			was, is := plain(mf.GetMetric()), plain(short[name].GetMetric())
			if was != nil && !slices.Equal(was, is) {
				t.Fatalf("%s:\n full     %q\n filtered %q", name, was, is)
			}
		}
	}
}

func TestFilterEqualsFullParse(t *testing.T) {
	for _, path := range promFiles(t) {
		text, _ := readGolden(t, path)
		if _, err := fullParse(text); err != nil {
			t.Errorf("%s: %v", pageName(path), err)
		}
		sameAsFull(t, text)
	}
}

func FuzzParsePage(f *testing.F) {
	for _, path := range promFiles(f) {
		text, _ := readGolden(f, path)
		f.Add(text)
		f.Add(text[:len(text)/2])
		f.Add(bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n")))
	}
	f.Add([]byte(`{"vllm:num_requests_waiting",engine="0"} 4`))
	f.Add([]byte("vllm:num_requests_waiting{engine=\"0\"} 1e999 # {a=\"b\"} 1\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var prev *Sample
		for _, o := range []ParseOptions{{}, {Rank: "1"}, {Model: "m"}} {
			o.Prev = prev
			s, err := Parse(text, o)
			if err != nil {
				continue
			}
			checkSane(t, s)
			s.Carry(prev, 1)
			s.Restarted(prev)
			prev = s
		}
		if g, err := ParseGPUs(text, nil); err == nil {
			Join(g, "", "p", MedianClocks(g))
		}
		if namesInBraces(text) {
			return // a name that is not first in its braces is not ours to find
		}
		sameAsFull(t, text)
	})
}

func namesInBraces(text []byte) bool {
	for line := range bytes.Lines(text) {
		if bytes.HasPrefix(bytes.TrimLeft(line, " \t"), []byte("{")) {
			return true
		}
	}
	return false
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
	if !slices.Equal(named, []string{"internal/core/telemetry/page.go"}) {
		t.Errorf("expfmt.TextParser is named in %q, want newParser's result only", named)
	}
	p := newParser()
	if _, err := p.TextToMetricFamilies(strings.NewReader("a 1\n")); err != nil {
		t.Error(err)
	}
}

// BenchmarkParse reads a 22 KB page through the filter; BenchmarkFullParse is
// the reference, expfmt over the whole of it.
func BenchmarkParse(b *testing.B) {
	text := []byte(metricsPage(b, "llmd_sim_loaded.prom"))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(text, ParseOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFullParse(b *testing.B) {
	text := []byte(metricsPage(b, "llmd_sim_loaded.prom"))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := fullParse(text); err != nil {
			b.Fatal(err)
		}
	}
}
