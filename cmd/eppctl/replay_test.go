package main

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/inspect/replay"
)

// What is compared follows from what is asked: a what-if beside what it changes.
func TestReplayFlags(t *testing.T) {
	for args, want := range map[string][]string{
		"--trace t":                                   {"pool", "least-in-flight", "round-robin"},
		"--trace t --weight kv=2":                     {"pool", "what-if"},
		"--decisions d":                               {"recorded", "least-in-flight", "round-robin"},
		"--decisions d --weight kv=2":                 {"recorded", "what-if"},
		"--decisions d --policy fixed,recorded":       {"recorded", "fixed"},
		"--decisions d --weight kv=2 --policy aibrix": {"recorded", "what-if", "aibrix"},
	} {
		if o := replayed(t, strings.Fields(args)...); !slices.Equal(o.Policies, want) {
			t.Errorf("%s: %v, want %v", args, o.Policies, want)
		}
	}
	o := replayed(t, "--decisions", "d", "--weight", "kv=2", "--weight", "breaker.depth=16", "--pods", "3", "--pace", "2")
	if want := []pick.Weight{{Key: "alpha", Value: 2}, {Key: "breaker.depth", Value: 16}}; !slices.Equal(o.Weights, want) {
		t.Errorf("weights %v", o.Weights)
	}
	if o.AsRecorded != (replay.AsRecorded{Scrape: true, Pool: true}) || o.Fleet.Pods != 3 {
		t.Errorf("%+v, %d pods", o.AsRecorded, o.Fleet.Pods)
	}
	if plain := replayed(t, "--trace", "t"); o.Fleet.Profile.PerToken != 2*plain.Fleet.Profile.PerToken {
		t.Errorf("--pace 2: %v and %v seconds per token", o.Fleet.Profile.PerToken, plain.Fleet.Profile.PerToken)
	}
	if o := replayed(t, "--trace", "t", "--speed", "1,2,1", "--policy", "pool,fixed,pool"); !slices.Equal(o.Speeds, []float64{1, 2}) || len(o.Policies) != 2 {
		t.Errorf("speeds %v, policies %v: want each once", o.Speeds, o.Policies)
	}
	for args, want := range map[string]string{
		"":                                "expected one of them",
		"--trace t --decisions d":         "found --trace and --decisions",
		"--decisions d --param a=1":       "parameters are of a --workload",
		"--trace t --model m":             "models are of --decisions",
		"--decisions d --adapters 3":      "found --adapters with --decisions",
		"--decisions d --weight queue=2":  "has no weight",
		"--decisions d --weight kv":       "--weight: found",
		"--decisions d --pace 0":          "--pace",
		"--trace t --pace Inf":            "--pace: found \"+Inf\"; expected a number from 0.001 to 1000",
		"--trace t --pace 1e-9":           "--pace",
		"--workload hot --param zipf=NaN": "--param",
		"--trace t --kv-pool-tokens -1":   "0 or more",
		"--trace t --host-tokens -1":      "0 or more",
	} {
		cmd := newReplay(&app{streams: streams(t)}, func(context.Context, *replay.Options) error { return nil })
		cmd.SetContext(t.Context())
		if err := cmd.ParseFlags(strings.Fields(args)); err != nil {
			t.Fatal(err)
		}
		if err := cmd.RunE(cmd, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}

func replayed(t *testing.T, args ...string) (o *replay.Options) {
	t.Helper()
	cmd := newReplay(&app{streams: streams(t)}, func(_ context.Context, got *replay.Options) error {
		o = got
		return nil
	})
	cmd.SetContext(t.Context())
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	if err := cmd.RunE(cmd, nil); err != nil {
		t.Fatal(err)
	}
	if o.Fleet.Scrape != (250 * time.Millisecond).Seconds() {
		t.Errorf("scrapes every %v s", o.Fleet.Scrape)
	}
	return o
}
