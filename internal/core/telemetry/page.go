package telemetry

import (
	"bytes"
	"fmt"
	"strings"
)

// page holds the wanted families of one metrics page by their own name. It
// points into the page's text.
type page map[string]*family

// readPage parses the families in want. Lines of others are never looked at, so
// that nothing an engine adds can break the scrape, and what is allocated grows
// with the wanted series alone; a bad line of a wanted family fails the whole
// page, because a partial page would show a smaller queue. Comments are passed
// over, TYPE among them: what a metric is, its name says, and pages repeat or
// misplace their TYPE lines.
func readPage(text []byte, want names) (page, error) {
	pg := page{}
	n := 0
	for line := range bytes.Lines(text) {
		n++
		line = bytes.TrimRight(line, "\r\n")
		written, rest, braced := lineName(line)
		name, ok := want[string(written)]
		if !ok {
			continue
		}
		s, err := parseSeries(rest, braced)
		if err != nil {
			return nil, fmt.Errorf("metrics page: line %d: %s: %w", n, name.written, err)
		}
		f := pg[name.own]
		if f == nil {
			f = &family{name: name.written}
			pg[name.own] = f
		}
		if f.name != name.written {
			// One page in two forms of a name: the own form wins, else the lesser,
			// so that the order on the page decides nothing.
			if f.name == name.own || name.written != name.own && f.name < name.written {
				continue
			}
			*f = family{name: name.written}
		}
		f.add(s)
	}
	return pg, nil
}

// names are the wanted metrics by every form in which they may be written.
type names map[string]name

type name struct{ written, own string }

// ray is what Ray Serve puts in front of every name.
const ray = "ray_"

// forms are the beginnings of names beside the engine's own: Ray Serve turns
// colons to underscores, SGLang's router and negotiated escaping write sglang_,
// Dynamo up to 0.7 writes trtllm:.
var forms = [...]struct{ other, own string }{
	{"vllm_", "vllm:"}, {"sglang_", "sglang:"}, {"trtllm:", "trtllm_"},
}

// want enters metrics by their own names, in all their forms.
func (w names) want(own ...string) {
	for _, o := range own {
		w.form(o, o)
		for _, f := range forms {
			if rest, ok := strings.CutPrefix(o, f.own); ok {
				w.form(f.other+rest, o)
			}
		}
	}
}

func (w names) form(written, own string) {
	w[written] = name{written, own}
	w[ray+written] = name{ray + written, own}
}
