package main

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/eppctl/eppctl/internal/inspect/out"
	"github.com/eppctl/eppctl/internal/serve"
)

var printFormats = []string{"table", "json", "yaml"}

// printed is what serve --print-config shows: every value and who said so.
type printed struct {
	APIVersion string        `json:"apiVersion"`
	Kind       string        `json:"kind"`
	Values     []serve.Value `json:"values"`
}

// printed lists the values of the file, then the flags that no key stands for.
func (o *serveOptions) printed(cmd *cobra.Command, c *serve.Config) *printed {
	p := &printed{APIVersion: serve.APIVersion, Kind: "Config", Values: c.Values()}
	without := []string{"print-config", "output", "help"} // they say nothing about how serve runs
	for _, k := range o.keyed() {
		without = append(without, k.flag)
	}
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if slices.Contains(without, f.Name) {
			return
		}
		v := serve.Value{Key: "--" + f.Name, Value: f.Value.String(), From: serve.Origin{Kind: serve.FromDefault}}
		if f.Name == "config" {
			v.Value = c.Path
		}
		if f.Changed {
			v.From = serve.Set(origin(f))
		}
		p.Values = append(p.Values, v)
	})
	return p
}

func (p *printed) print(s *out.Streams, format string) error {
	if format == "table" {
		return p.table(s)
	}
	b, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	if b = append(out.JSON(b), '\n'); format == "yaml" {
		if b, err = out.YAML(b); err != nil {
			return err
		}
	}
	_, err = s.Out.Write(b)
	return err
}

func (p *printed) table(s *out.Streams) error {
	t := &out.Table{Columns: []out.Column{{Name: "KEY"}, {Name: "VALUE", Wrap: true}, {Name: "FROM", Wrap: true}}}
	for _, v := range p.Values {
		style := out.Plain
		if v.From.Kind == serve.FromDefault {
			style = out.Dim
		}
		t.AddCells(out.Cell{Text: v.Key}, out.Cell{Text: valueText(v.Value)}, out.Cell{Text: v.From.String(), Style: style})
	}
	return t.Write(s.Out, s)
}

// valueText writes a value as the file would have it.
func valueText(v any) string {
	switch v {
	case nil:
		return "none"
	case "":
		return `""`
	}
	return fmt.Sprint(v)
}
