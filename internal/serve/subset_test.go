package serve

import (
	"fmt"
	"strings"
	"testing"

	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/protobuf/types/known/structpb"
)

func TestSubset(t *testing.T) {
	r := newRig(t, rigOptions{})
	str, num := structpb.NewStringValue, structpb.NewNumberValue
	list := func(v ...*structpb.Value) *structpb.Value {
		return structpb.NewListValue(&structpb.ListValue{Values: v})
	}
	for _, c := range []struct {
		name string
		hint *structpb.Value
		want string // "" = refused
	}{
		{"list", list(str("10.0.0.2:8000")), "10.0.0.2:8000"},
		{"string", str("10.0.0.2:8000"), "10.0.0.2:8000"},
		{"comma string", str("9.9.9.9:1,10.0.0.2:8000"), "10.0.0.2:8000"},
		{"mixed", list(str("9.9.9.9:1,9.9.9.8:1"), str("10.0.0.2:8000")), "10.0.0.2:8000"},
		{"spaces", str(" 9.9.9.9:1 , 10.0.0.2:8000 "), "10.0.0.2:8000"},
		{"EU-04 ip match", str("10.0.0.2"), "10.0.0.2:8000"},
		{"EU-04 ip other", str("10.0.0.9"), ""},
		{"EU-04 ip:port match", str("10.0.0.2:8000"), "10.0.0.2:8000"},
		{"EU-04 ip:port other", str("10.0.0.2:8001"), ""},
		{"ipv6 bracketed", str("[fd00::3]:8000"), "[fd00::3]:8000"},
		{"ipv6 bare", str("fd00::3"), "[fd00::3]:8000"},
		{"ipv6 long", str("[fd00:0:0:0::3]:8000"), "[fd00::3]:8000"},
		{"ipv6 brackets alone", str("[fd00::3]"), "[fd00::3]:8000"},
		{"mapped", str("::ffff:10.0.0.2"), "10.0.0.2:8000"},
		{"empty list", list(), ""},
		{"empty string", str(""), ""},
		{"number", num(7), ""},
		{"null", structpb.NewNullValue(), ""},
	} {
		for _, eos := range []bool{true, false} {
			t.Run(fmt.Sprintf("EP-19/%s/eos=%v", c.name, eos), func(t *testing.T) {
				list := []*extproc.ProcessingRequest{withMetadata(reqHeaders(fullDuplex, eos, completionsPath), subsetNamespace, subsetKey, c.hint)}
				if !eos {
					list = append(list, reqBody(completion("m", ids(1, 64)), true))
				}
				got := r.ask(list...)
				if c.want == "" {
					wantKinds(t, got, "immediate 503")
					if d := got[0].GetImmediateResponse().GetDetails(); d != "eppctl_subset_empty" {
						t.Fatalf("details %q", d)
					}
					return
				}
				if d := destination(t, got[0]); d != c.want {
					t.Fatalf("%s, want %s", d, c.want)
				}
			})
		}
	}
	t.Run("EP-19/key absent", func(t *testing.T) {
		got := r.ask(withMetadata(reqHeaders(fullDuplex, true, completionsPath), subsetNamespace, "other", str("x")))
		destination(t, got[0])
	})
	t.Run("EP-20", func(t *testing.T) {
		f := newRig(t, rigOptions{options: Options{Fallbacks: 2}})
		got := f.ask(withSubset(reqHeaders(fullDuplex, true, completionsPath), "10.0.0.1", "fd00::3"))
		entries := strings.Split(destination(t, got[0]), ",")
		if len(entries) != 2 || entries[0] == entries[1] {
			t.Fatalf("list %v", entries)
		}
		for _, e := range entries {
			if e != "10.0.0.1:8000" && e != "[fd00::3]:8000" {
				t.Fatalf("%s is outside the subset", e)
			}
		}
		if all := destination(t, f.ask(reqHeaders(fullDuplex, true, completionsPath))[0]); strings.Count(all, ",") != 2 {
			t.Fatalf("list %q, want three entries", all)
		}
	})
	t.Run("RS-12", func(t *testing.T) {
		load := newRig(t, rigOptions{})
		b := load.pod("b")
		load.scrape(b, 20, 10)
		got := load.ask(withSubset(reqHeaders(fullDuplex, true, completionsPath), "10.0.0.2:8000"))
		if d := destination(t, got[0]); d != b.Target {
			t.Fatalf("%s, want the loaded %s", d, b.Target)
		}
	})
}
