package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/eppctl/eppctl/internal/core/feed"
	"github.com/eppctl/eppctl/internal/inspect/out"
)

// Model is an entry of the file's models.
type Model struct {
	Name              string
	Aliases, Adapters []string
}

// served is what one pod lists at /v1/models.
type served struct {
	pod             string
	names, adapters []string
}

// listed collects the lists of the pods that have one.
func listed(facts []feed.Fact) []served {
	var list []served
	for _, f := range facts {
		if len(f.Models) > 0 {
			list = append(list, served{f.Pod, f.Models, f.Adapters})
		}
	}
	return list
}

// models compares the table of models with what the pods list. whole says that
// every pod of the file is among them: only then can a model be missed.
func models(table []Model, pods []served, whole bool) []feed.Finding {
	if len(table) == 0 {
		return nil
	}
	var found []feed.Finding
	for _, p := range pods {
		found = append(found, p.against(table)...)
	}
	for _, m := range table {
		have := slices.DeleteFunc(slices.Clone(pods), func(p served) bool { return !slices.Contains(p.names, m.Name) })
		if len(have) > 0 {
			found = append(found, m.unserved(have)...)
		} else if whole {
			found = append(found, feed.Finding{
				Severity: feed.SeverityWarning, Code: "model-without-pods", Field: "models[].name", Value: m.Name,
				Expected: strings.Join(allNames(pods), ", "), Hint: "no pod lists it: requests for it have nowhere to go",
			})
		}
	}
	return found
}

// against warns of a pod none of whose names is an entry.
func (p served) against(table []Model) []feed.Finding {
	for _, m := range table {
		if slices.Contains(p.names, m.Name) {
			return nil
		}
	}
	return []feed.Finding{{
		Severity: feed.SeverityWarning, Code: "model-not-configured", Pod: p.pod, Field: "models[].name",
		Expected: strings.Join(p.names, ", "), Hint: "no entry of models has this name, so that the defaults of weights hold for it",
	}}
}

// unserved compares aliases and adapters with what the pods of the model list. What
// is told of all pods alike is one finding.
func (m Model) unserved(pods []served) []feed.Finding {
	var found []feed.Finding
	for _, a := range m.Aliases {
		without := 0
		for _, p := range pods {
			if !slices.Contains(p.names, a) {
				without++
			}
		}
		if without > 0 {
			found = append(found, feed.Finding{
				Severity: feed.SeverityInfo, Code: "alias-not-served", Field: "models[].aliases", Value: a,
				Hint: fmt.Sprintf("%d of %s list it; %s", len(pods)-without, out.Plural(len(pods), "pod"), hintAlias),
			})
		}
	}
	for _, p := range pods {
		for _, a := range m.Adapters {
			if !slices.Contains(p.adapters, a) && len(p.adapters) > 0 { // some engines list none
				found = append(found, feed.Finding{
					Severity: feed.SeverityWarning, Code: "adapter-not-loaded", Pod: p.pod, Field: "models[].adapters", Value: a,
					Expected: strings.Join(p.adapters, ", "), Hint: "requests for it cost a load on this pod, or get 404",
				})
			}
		}
	}
	var extra []string
	for _, p := range pods {
		for _, a := range p.adapters {
			if !slices.Contains(m.Adapters, a) && !slices.Contains(extra, a) {
				extra = append(extra, a)
			}
		}
	}
	for _, a := range extra {
		found = append(found, feed.Finding{
			Severity: feed.SeverityInfo, Code: "adapter-not-configured", Field: "models[].adapters", Expected: a,
			Hint: "it is found all the same, as long as a pod that lists it is there",
		})
	}
	return found
}

// serve puts the pod's own name into bodies that pass through it.
const hintAlias = "serve rewrites it; where Envoy keeps the body to itself (NONE, STREAMED) the pod answers 404"

// told drops what the feed says of further names when the table has them.
func told(found []feed.Finding, table []Model) []feed.Finding {
	return slices.DeleteFunc(found, func(f feed.Finding) bool {
		if f.Code != "more-names" {
			return false
		}
		for name := range strings.SplitSeq(f.Expected, ", ") {
			if !slices.ContainsFunc(table, func(m Model) bool { return m.Name == name || slices.Contains(m.Aliases, name) }) {
				return false
			}
		}
		return true
	})
}

func allNames(pods []served) []string {
	var list []string
	for _, p := range pods {
		list = append(list, p.names...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}
