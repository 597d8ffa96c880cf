package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/eppctl/eppctl/internal/inspect/out"
)

// flagCase is a command line with one flag, and what the command has got by it.
type flagCase struct {
	args string
	got  func() any
	want any
}

// takes runs a command with each flag in turn. A flag without a case fails.
func takes(t *testing.T, build func(*app) *cobra.Command, cases map[string]flagCase) {
	t.Helper()
	cmd := func() *cobra.Command {
		var b bytes.Buffer
		none := func(string) string { return "" }
		return build(&app{streams: out.NewStreams(strings.NewReader(""), &b, &b, none), getenv: none})
	}
	cmd().Flags().VisitAll(func(f *pflag.Flag) {
		tc, ok := cases[f.Name]
		if !ok {
			t.Errorf("nobody tries --%s", f.Name)
			return
		}
		if !strings.Contains(" "+tc.args+" ", " --"+f.Name+" ") && (f.Shorthand == "" || !strings.Contains(" "+tc.args+" ", " -"+f.Shorthand+" ")) {
			t.Errorf("--%s is not in %q", f.Name, tc.args)
		}
		c := cmd()
		c.SetArgs(strings.Fields(tc.args))
		if err := c.ExecuteContext(t.Context()); err != nil {
			t.Errorf("%s: %v", tc.args, err)
		} else if got := fmt.Sprintf("%#v", tc.got()); got != fmt.Sprintf("%#v", tc.want) {
			t.Errorf("%s: %s, want %#v", tc.args, got, tc.want)
		}
	})
}

func TestExplainFlags(t *testing.T) {
	var o *explainOptions
	build := func(a *app) *cobra.Command {
		return newExplain(a, func(_ context.Context, got *explainOptions) error {
			o = got
			return nil
		})
	}
	takes(t, build, map[string]flagCase{
		"file":           {"-f a.json", func() any { return o.File }, "a.json"},
		"request":        {"--request a.json", func() any { return o.File }, "a.json"},
		"prompt":         {"--prompt hello", func() any { return o.Prompt }, "hello"},
		"token-ids":      {"--token-ids 1,2", func() any { return o.Tokens }, "1,2"},
		"model":          {"--model m", func() any { return o.Model }, "m"},
		"path":           {"--path /v1/x", func() any { return o.Path }, "/v1/x"},
		"header":         {"--header a=b --header c=d", func() any { return o.Headers }, []string{"a=b", "c=d"}},
		"subset":         {"--subset h:1,h:2", func() any { return o.Subset }, "h:1,h:2"},
		"request-id":     {"--request-id r", func() any { return o.RequestID }, "r"},
		"addr":           {"--addr h:1", func() any { return o.addr }, "h:1"},
		"against":        {"--against http://h:2/", func() any { return o.against }, "h:2"},
		"save":           {"--save a.json", func() any { return o.Save }, "a.json"},
		"diff":           {"--diff a.json", func() any { return o.diff }, "a.json"},
		"timeout":        {"--timeout 3s", func() any { return o.Total }, 3 * time.Second},
		"dial-timeout":   {"--dial-timeout 3s", func() any { return o.Dial }, 3 * time.Second},
		"output":         {"-o wide", func() any { return o.Format }, "wide"},
		"all":            {"--all", func() any { return o.All }, true},
		"show-tokens":    {"--show-tokens", func() any { return o.ShowTokens }, true},
		"compare-engine": {"--compare-engine http://h:3", func() any { return o.Engine }, "http://h:3"},
		"read":           {"--read a --read b", func() any { return o.read.files }, []string{"a", "b"}},
		"at":             {"--read a --at +5m", func() any { return o.read.moment.Relative() }, true},
		"config":         {"--read a --config c.yaml", func() any { return o.read.config }, "c.yaml"},
		"set":            {"--set a.queue=1 --set a.held=2", func() any { return o.Suppose.Inputs }, []string{"a.queue=1", "a.held=2"}},
		"weight":         {"--weight kv=1 --weight beta=2", func() any { return o.Suppose.Weights }, []string{"kv=1", "beta=2"}},
		"without":        {"--without a --without b", func() any { return o.Suppose.Without }, []string{"a", "b"}},
	})
}

func TestTopFlags(t *testing.T) {
	var o *topOptions
	build := func(a *app) *cobra.Command {
		return newTop(a, func(_ context.Context, got *topOptions) error {
			o = got
			return nil
		})
	}
	takes(t, build, map[string]flagCase{
		"addr":         {"--addr h:1", func() any { return o.addr }, "h:1"},
		"dial-timeout": {"--dial-timeout 3s", func() any { return o.Dial }, 3 * time.Second},
		"interval":     {"-i 3s", func() any { return o.Interval }, 3 * time.Second},
		"once":         {"--once", func() any { return o.Once }, true},
		"batch":        {"--batch", func() any { return o.Batch }, true},
		"count":        {"--batch -n 3", func() any { return o.Count }, 3},
		"output":       {"-o jsonl", func() any { return o.Format }, "jsonl"},
		"ascii":        {"--ascii", func() any { return o.ASCII }, true},
		"config":       {"--config c.yaml", func() any { return fmt.Sprint(o.config, " ", o.direct) }, "c.yaml true"},
		"read":         {"--read a --read b", func() any { return o.read }, []string{"a", "b"}},
		"pod":          {"--pod a --pod b", func() any { return fmt.Sprint(o.pods, " ", o.direct) }, "[a b] true"},
	})
}

func TestPicksFlags(t *testing.T) {
	var o *picksOptions
	build := func(a *app) *cobra.Command {
		return newPicks(a, func(_ context.Context, got *picksOptions) error {
			o = got
			return nil
		})
	}
	takes(t, build, map[string]flagCase{
		"addr":         {"--addr h:1", func() any { return o.addr }, "h:1"},
		"dial-timeout": {"--dial-timeout 3s", func() any { return o.Dial }, 3 * time.Second},
		"follow":       {"-f", func() any { return o.Follow }, true},
		"last":         {"-n 3", func() any { return o.Last }, 3},
		"pod":          {"--pod a", func() any { return o.Pod }, "a"},
		"output":       {"-o jsonl", func() any { return o.Format }, "jsonl"},
	})
}
