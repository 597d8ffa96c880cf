package serve

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/index"
)

func TestIndexMetrics(t *testing.T) {
	r := newRig(t, rigOptions{})
	p := r.pod("a")
	m := p.Members[0]
	r.fleet.Index.Register(m, index.Owner{Model: "m", Engine: p.Spec.Engine, BlockSize: blockSize, Blocks: 4})
	e := &event.Event{Kind: event.Stored, Hashes: []uint64{1, 2}, Tokens: ids(1, 2*blockSize), BlockSize: blockSize, LoRAID: -1}
	r.fleet.Index.Apply(m, e, 0)
	r.fleet.Index.Apply(m, e, 0) // four copies of two blocks, and room for three
	r.fleet.Index.Apply(m, &event.Event{Kind: event.Stored, Group: 1, SpecKind: "mamba", LoRAID: -1}, 0)
	r.picker.met.registry.MustRegister(&collector{picker: r.picker})

	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(scrapePage(t, r.picker.met, false)))
	if err != nil {
		t.Fatal(err)
	}
	sum := func(name, pod string) (v float64) {
		for _, x := range families["eppctl_"+name].GetMetric() {
			mine := pod == ""
			for _, l := range x.GetLabel() {
				mine = mine || l.GetName() == "pod" && l.GetValue() == pod
			}
			if mine {
				v += x.GetGauge().GetValue() + x.GetCounter().GetValue()
			}
		}
		return v
	}
	for _, c := range []struct {
		name, pod string
		want      float64
	}{
		{"index_blocks", "", 2},
		{"index_shard_blocks", "", 2},
		{"pod_blocks", "a", 2},
		{"pod_matches_approximate", "a", 1},
		{"pod_matches_approximate", "b", 0},
		{"pod_block_copies_above_capacity_total", "a", 1},
	} {
		if got := sum(c.name, c.pod); got != c.want {
			t.Errorf("%s of %q: %v, want %v", c.name, c.pod, got, c.want)
		}
	}
	if s := r.picker.snapshot(stateQuery{limit: 10}, time.Now()); !s.Pods[0].Ranks[0].Approximate {
		t.Errorf("%+v", s.Pods[0].Ranks)
	}
}
