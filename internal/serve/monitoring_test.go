package serve

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

const deployed = "../../deploy"

// alerts are the rules as Prometheus reads them.
type alerts struct {
	Groups []struct {
		Rules []struct {
			Alert       string
			Expr        string
			For         string
			Labels      map[string]string
			Annotations map[string]string
		}
	}
}

func readAlerts(t *testing.T) *alerts {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(deployed, "prometheus/alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	a := &alerts{}
	if err := yaml.Unmarshal(text, a); err != nil {
		t.Fatal(err)
	}
	if len(a.Groups) != 1 || len(a.Groups[0].Rules) < 10 {
		t.Fatalf("%d groups", len(a.Groups))
	}
	return a
}

// dashboard is what of Grafana's model is looked at here.
type dashboard struct {
	Title         string
	UID           string
	SchemaVersion int `json:"schemaVersion"`
	Templating    struct {
		List []struct{ Name, Type, Query any }
	}
	Panels []struct {
		ID         int
		Type       string
		Title      string
		Datasource struct{ UID string }
		Targets    []struct {
			Expr       string
			Datasource struct{ UID string }
		}
	}
}

// expressions of the panels, with what Grafana puts in for its variables.
func (d *dashboard) expressions() (list []string) {
	fill := strings.NewReplacer("$__rate_interval", "5m", "$instance", ".*", "$job", ".*")
	for _, p := range d.Panels {
		for _, x := range p.Targets {
			list = append(list, fill.Replace(x.Expr))
		}
	}
	return list
}

func readDashboard(t *testing.T) *dashboard {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(deployed, "grafana/eppctl.json"))
	if err != nil {
		t.Fatal(err)
	}
	d := &dashboard{}
	if err := json.Unmarshal(text, d); err != nil {
		t.Fatal(err)
	}
	return d
}

// promtool runs Prometheus' own checker.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	script := exec.Command("../../scripts/promtool.sh")
	script.Stderr = os.Stderr
	path, err := script.Output()
	if err != nil {
		t.Fatalf("this test needs promtool (make deps): %v", err)
	}
	if text, err := exec.Command(strings.TrimSpace(string(path)), args...).CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, text)
	}
}

// The alerts are rules to Prometheus, and fire when they should.
func TestAlertRules(t *testing.T) {
	dir := filepath.Join(deployed, "prometheus")
	promtool(t, "check", "rules", filepath.Join(dir, "alerts.yaml"))
	promtool(t, "test", "rules", filepath.Join(dir, "alerts_test.yaml"))
	tests, err := os.ReadFile(filepath.Join(dir, "alerts_test.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	told := regexp.MustCompile(`(?m)^### (Eppctl\w+)$`).FindAllStringSubmatch(string(page), -1)
	rules := readAlerts(t).Groups[0].Rules
	for i, r := range rules {
		if i >= len(told) || told[i][1] != r.Alert {
			t.Errorf("docs/operations.md does not say what to do about %s, or not in its place", r.Alert)
		}
		if !strings.HasSuffix(r.Annotations["runbook_url"], "/docs/operations.md#"+strings.ToLower(r.Alert)) {
			t.Errorf("%s: runbook_url %s", r.Alert, r.Annotations["runbook_url"])
		}
		if r.Annotations["summary"] == "" || !slices.Contains([]string{"critical", "warning"}, r.Labels["severity"]) {
			t.Errorf("%s: no summary, or severity %q", r.Alert, r.Labels["severity"])
		}
		if !regexp.MustCompile(`alertname: ` + r.Alert + `\n +exp_alerts:`).Match(tests) {
			t.Errorf("no test in which %s fires", r.Alert)
		}
	}
	if len(told) != len(rules) {
		t.Errorf("docs/operations.md tells of %d alerts, there are %d", len(told), len(rules))
	}
}

// The dashboard asks for its data source, and Prometheus understands what it asks.
func TestDashboard(t *testing.T) {
	d := readDashboard(t)
	const source = "${datasource}"
	if len(d.Templating.List) == 0 || d.Templating.List[0].Name != "datasource" || d.Templating.List[0].Type != "datasource" || d.Templating.List[0].Query != "prometheus" {
		t.Errorf("variables %v", d.Templating.List)
	}
	ids := map[int]bool{}
	for _, p := range d.Panels {
		if ids[p.ID] {
			t.Errorf("panel %q has the id of another", p.Title)
		}
		ids[p.ID] = true
		if p.Type == "row" {
			continue
		}
		if p.Datasource.UID != source || len(p.Targets) == 0 {
			t.Errorf("panel %q: data source %q, %d targets", p.Title, p.Datasource.UID, len(p.Targets))
		}
		for _, x := range p.Targets {
			if x.Datasource.UID != source {
				t.Errorf("panel %q: data source %q", p.Title, x.Datasource.UID)
			}
		}
	}
	var rules strings.Builder
	rules.WriteString("groups:\n- name: panels\n  rules:\n")
	for i, e := range d.expressions() {
		fmt.Fprintf(&rules, "  - {record: 'panel:%d', expr: %q}\n", i, e)
	}
	file := filepath.Join(t.TempDir(), "panels.yaml")
	if err := os.WriteFile(file, []byte(rules.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	promtool(t, "check", "rules", file)
}

// Alerts, their tests and the dashboard ask for series that serve has, by labels that
// those have.
func TestMonitoredSeries(t *testing.T) {
	have := exposed(t)
	sources := map[string]string{"dashboard": strings.Join(readDashboard(t).expressions(), "\n")}
	for _, r := range readAlerts(t).Groups[0].Rules {
		sources[r.Alert] = r.Expr
	}
	tests, err := os.ReadFile(filepath.Join(deployed, "prometheus/alerts_test.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`series: '([^']+)'`).FindAllStringSubmatch(string(tests), -1) {
		sources["alerts_test.yaml"] += m[1] + "\n"
	}
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, expr := range sources {
		if n := have.wants(expr, string(page), func(format string, args ...any) { t.Errorf(name+": "+format, args...) }); n == 0 {
			t.Errorf("%s: no series found in %s: the search is broken", name, expr)
		}
	}
	// What it is to find, it finds.
	for _, bad := range []string{
		`eppctl_no_such_total`, `eppctl_pods{state="x"}`, `eppctl_pod_events_state{state="alive"}`, `sum by (pot) (eppctl_pod_waiting)`,
		`eppctl_pods_bucket`, `eppctl_unmatched_total{reason=~"no-body|no-such-reason"}`,
	} {
		found := false
		have.wants(bad, string(page), func(string, ...any) { found = true })
		if !found {
			t.Errorf("%s passes", bad)
		}
	}
}

// series are metrics by name, with the labels they have and the values those were seen
// with.
type series map[string]map[string][]string

var (
	selector = regexp.MustCompile(`\b((?:eppctl|process)_\w+|up)\b(?:\{([^}]*)\})?`)
	matcher  = regexp.MustCompile(`(\w+)\s*(?:=~|!~|!=|=)\s*"([^"]*)"`)
	grouping = regexp.MustCompile(`\b(?:by|without|on) \(([^)]*)\)`)
)

// Labels that Prometheus adds, those of which every value was seen at once on the page
// of a fleet, and those whose values are on the page for operators.
var (
	ofTargets = []string{"job", "instance", "le"}
	closed    = []string{"state", "what", "tier"}
	words     = []string{"reason"}
)

// wants holds an expression to the series there are, and returns how many it names.
func (s series) wants(expr, page string, wrong func(format string, args ...any)) (n int) {
	labels := slices.Clone(ofTargets)
	for _, m := range selector.FindAllStringSubmatch(expr, -1) {
		n++
		name := m[1]
		if _, ok := s[name]; !ok {
			wrong("%s is not there", name)
			continue
		}
		for label := range s[name] {
			labels = append(labels, label)
		}
		for _, x := range matcher.FindAllStringSubmatch(m[2], -1) {
			label := x[1]
			values, ok := s[name][label]
			if !ok && !slices.Contains(ofTargets, label) {
				wrong("%s has no label %s", name, label)
			}
			for value := range strings.SplitSeq(x[2], "|") {
				switch {
				case slices.Contains(closed, label) && len(values) > 0 && !slices.Contains(values, value):
					wrong("%s: %s is %q, never %q", name, label, values, value)
				case slices.Contains(words, label) && name != "eppctl_events_skipped_total" && value != "" && !strings.Contains(page, "`"+value+"`"):
					wrong("%s: docs/operations.md tells of no %s %q", name, label, value)
				}
			}
		}
	}
	for _, m := range grouping.FindAllStringSubmatch(expr, -1) {
		for label := range strings.SplitSeq(m[1], ",") {
			if !slices.Contains(labels, strings.TrimSpace(label)) {
				wrong("nothing has the label %s", label)
			}
		}
	}
	return n
}

var described = regexp.MustCompile(`fqName: "([^"]+)".* variableLabels: \{([^}]*)\}`)

// exposed is what a running serve has on its page, and beside it what the page has only
// once something happened, by its description.
func exposed(t *testing.T) series {
	t.Helper()
	p := startProcess(t, 2, same)
	c := p.talk()
	c.send(reqHeaders(fullDuplex, false, completionsPath), reqBody(completion("sim", ids(1, 64)), true))
	destination(t, c.recv())
	_, page := p.call("GET", "http://"+p.at.Metrics+"/metrics", nil)
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(string(page)))
	if err != nil {
		t.Fatal(err)
	}
	s := series{"up": {}} // Prometheus' own
	put := func(name, label, value string) {
		if s[name] == nil {
			s[name] = map[string][]string{}
		}
		if label != "" && !slices.Contains(s[name][label], value) {
			s[name][label] = append(s[name][label], value)
		}
	}
	for name, f := range families {
		names := []string{name}
		if f.GetMetric()[0].GetHistogram() != nil {
			names = []string{name + "_bucket", name + "_sum", name + "_count"}
		}
		for _, n := range names {
			put(n, "", "")
			for _, m := range f.GetMetric() {
				for _, l := range m.GetLabel() {
					put(n, l.GetName(), l.GetValue())
				}
			}
		}
	}
	descs := make(chan *prometheus.Desc, 1000)
	newMetrics().registry.Describe(descs)
	for _, d := range []*prometheus.Desc{descSkips, descUnknown, descShapes, descFaults, descPurges, descReplays, descRefused, descParity, descProbes} {
		descs <- d
	}
	close(descs)
	for d := range descs {
		m := described.FindStringSubmatch(d.String())
		if m == nil {
			t.Fatalf("description %s", d)
		}
		if s[m[1]] == nil && s[m[1]+"_bucket"] == nil {
			s[m[1]] = map[string][]string{}
			for label := range strings.SplitSeq(m[2], ",") {
				s[m[1]][label] = nil
			}
		}
	}
	return s
}
