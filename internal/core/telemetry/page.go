package telemetry

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// newParser is the one place where a text parser is made: the zero value of
// expfmt.TextParser panics since prometheus/common 0.66. The UTF-8 scheme takes
// every name that the legacy scheme takes, colons included.
func newParser() expfmt.TextParser { return expfmt.NewTextParser(model.UTF8Validation) }

// page holds the wanted families of one metrics page by canonical name.
type page map[string]*family

// readPage parses the families in want, which is keyed by canonical name. Lines
// of other families are never looked at, so that nothing an engine adds can
// break the scrape; a bad line of a wanted family fails the whole page, because
// a partial page would show a smaller queue.
func readPage(text []byte, want map[string]bool) (page, error) {
	p := newParser()
	found, err := p.TextToMetricFamilies(bytes.NewReader(filter(text, want)))
	if err != nil {
		return nil, fmt.Errorf("metrics page: %w", err)
	}
	pg := make(page, len(found))
	for name, mf := range found {
		c := canonical(name)
		// One page in two name forms: the canonical form wins, else the
		// lesser one, so that map order decides nothing.
		if have := pg[c]; have != nil && (have.name == c || (name != c && have.name < name)) {
			continue
		}
		pg[c] = &family{name: name, series: lastOfEach(mf.GetMetric())}
	}
	return pg, nil
}

// filter copies the sample lines of wanted families. Comments go too: expfmt
// gives up on a second TYPE or HELP line, and without any every sample arrives
// untyped with its value all the same. Each copied line ends in a bare LF,
// since expfmt returns a sample without value for a last line that lacks it and
// refuses a CR.
func filter(text []byte, want map[string]bool) []byte {
	var out []byte
	for line := range bytes.Lines(text) {
		line = bytes.TrimRight(line, "\r\n")
		if wanted(lineName(line), want) {
			out = append(append(out, line...), '\n')
		}
	}
	return out
}

func wanted(name []byte, want map[string]bool) bool {
	// Neither look-up copies the name; only one in another form is copied.
	return want[string(name)] || (inOtherForm(name) && want[canonical(string(name))])
}

// lineName returns the metric name of a sample line, nil for anything else. The
// whole name counts: num_requests_waiting is not num_requests_waiting_by_reason.
func lineName(line []byte) []byte {
	line = bytes.TrimLeft(line, " \t")
	if len(line) == 0 || line[0] == '#' {
		return nil
	}
	if quoted, ok := bytes.CutPrefix(line, []byte(`{"`)); ok { // {"name",label="x"} 1
		name, _, _ := bytes.Cut(quoted, []byte(`"`))
		return name
	}
	for i, c := range line {
		if c == '{' || c == ' ' || c == '\t' {
			return line[:i]
		}
	}
	return nil
}

// ray is what Ray Serve puts in front of every name.
const ray = "ray_"

// forms are the beginnings of names beside the engine's own: Ray Serve turns
// colons to underscores, SGLang's router and negotiated escaping write sglang_,
// Dynamo up to 0.7 writes trtllm:.
var forms = [...]struct{ other, own string }{
	{"vllm_", "vllm:"}, {"sglang_", "sglang:"}, {"trtllm:", "trtllm_"},
}

// canonical maps the forms in which an engine's metric appears to one.
func canonical(name string) string {
	name = strings.TrimPrefix(name, ray)
	for _, f := range forms {
		if rest, ok := strings.CutPrefix(name, f.other); ok {
			return f.own + rest
		}
	}
	return name
}

func inOtherForm(name []byte) bool {
	if bytes.HasPrefix(name, []byte(ray)) {
		return true
	}
	for _, f := range forms {
		if bytes.HasPrefix(name, []byte(f.other)) {
			return true
		}
	}
	return false
}

// lastOfEach drops all but the last of series with equal labels.
func lastOfEach(ms []*dto.Metric) []series {
	out := make([]series, 0, len(ms))
	at := make(map[string]int, len(ms))
	for _, m := range ms {
		k := labelKey(m)
		if i, ok := at[k]; ok {
			out[i].m = m
			continue
		}
		at[k] = len(out)
		out = append(out, series{m})
	}
	return out
}

func labelKey(m *dto.Metric) string {
	pairs := make([]string, 0, len(m.GetLabel()))
	for _, l := range m.GetLabel() {
		pairs = append(pairs, strconv.Quote(l.GetName())+"="+strconv.Quote(l.GetValue()))
	}
	slices.Sort(pairs)
	return strings.Join(pairs, ",")
}
