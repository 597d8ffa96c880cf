package main

import (
	"slices"
	"strings"
	"testing"
)

// fake is an index whose process prints what it is told to.
func fake(name, printed string) command {
	return command{name, []string{"echo", printed}}
}

func TestRounds(t *testing.T) {
	r := results{}
	list := []command{{name: "eppctl"}, {name: "dynamo"}, {name: "smg"}}
	for _, c := range []command{
		fake("eppctl", `{"lookup_2048_hot": 9, "load": 5e6}`),
		fake("dynamo", `{"lookup_2048_hot": 12}`),
		fake("smg", `{"load": 4e6}`),
		fake("eppctl", `{"lookup_2048_hot": 8, "load": 6e6}`),
		fake("dynamo", `{"lookup_2048_hot": 10}`),
		fake("smg", `{"load": 3e6}`),
		fake("eppctl", `{"lookup_2048_hot": 8.5, "load": 4e6}`),
	} {
		if err := r.run(c); err != nil {
			t.Fatal(err)
		}
	}
	// The best round is the fastest: the least time, the highest rate.
	ratios := map[string]float64{}
	for _, row := range r.ratios() {
		ratios[row.Name] = *row.Ratio
	}
	if len(ratios) != 2 || ratios["lookup_2048_hot_vs_dynamo"] != 0.8 || ratios["cold_load_vs_smg"] != 1.5 {
		t.Errorf("ratios %v", ratios)
	}

	var out strings.Builder
	if err := r.print(&out, list); err != nil {
		t.Fatal(err)
	}
	lines := map[string]string{}
	for line := range strings.Lines(out.String()) {
		name, rest, _ := strings.Cut(strings.Join(strings.Fields(line), " "), " ")
		lines[name] = rest
	}
	if got, want := lines["lookup_2048_hot"], "us 8 / 8.5 10 / 12 -"; got != want {
		t.Errorf("line %q, want %q", got, want)
	}
	if got, want := lines["load"], "M blocks/s 6.00 / 5.00 - 4.00 / 4.00"; got != want {
		t.Errorf("line %q, want %q", got, want)
	}

	var names []string
	for _, row := range r.cells(list) {
		names = append(names, row.Name)
	}
	if !slices.Contains(names, "smg.load.best") || !slices.Contains(names, "eppctl.load.median") || len(names) != 8 {
		t.Errorf("rows %v", names)
	}
}

func TestBrokenProcess(t *testing.T) {
	r := results{}
	if err := r.run(command{"x", []string{"false"}}); err == nil {
		t.Error("a process that fails gives no error")
	}
	if err := r.run(fake("x", "panic: no")); err == nil {
		t.Error("output that is no JSON gives no error")
	}
}

// TestPromisesNameWhatIsMeasured: a promise of a phase that is not in the table
// would never be shown.
func TestPromisesNameWhatIsMeasured(t *testing.T) {
	for _, p := range promises {
		ok := false
		for _, phase := range phases {
			ok = ok || phase.name == p.phase
		}
		if !ok {
			t.Errorf("%s: no phase is called %s", p.name, p.phase)
		}
	}
}
