package explain

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/inspect"
	"github.com/eppctl/eppctl/internal/inspect/out"
)

// RunAgainst asks two replicas about the same request at the same time and prints
// what they do not have in common. It ends with a Negative error when they would pick
// different pods.
func (c *Command) RunAgainst(ctx context.Context, addrs [2]string, servers [2]Asker, s *out.Streams) error {
	r, err := c.Request(s.In)
	if err != nil {
		return err
	}
	const requestID = "X-Request-Id"
	if r.Header.Get(requestID) == "" {
		r.Header.Set(requestID, uuid.NewString())
	}
	x, err := askBoth(ctx, servers, r)
	if err != nil {
		return err
	}
	d := newReplicas(addrs[0], addrs[1], x[0], x[1])
	if err := c.printReplicas(s, d); err != nil {
		return err
	}
	if !d.SamePick {
		return &inspect.Error{
			Kind: inspect.Negative, Code: "E_REPLICAS_DIFFER",
			What: fmt.Sprintf("the replicas differ: %s picks %s, %s picks %s", addrs[0], d.outcome(&d.A), addrs[1], d.outcome(&d.B)),
		}
	}
	return nil
}

// askBoth asks at once: what moves between two questions would look like a difference.
func askBoth(ctx context.Context, servers [2]Asker, r inspect.Request) (x [2]*pick.Explanation, err error) {
	var errs [2]error
	one := func(i int) {
		var answer []byte
		if answer, errs[i] = servers[i].Explain(ctx, r); errs[i] == nil {
			x[i], errs[i] = parse(answer)
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		one(1)
	}()
	one(0)
	<-done
	if errs[0] != nil {
		return x, errs[0]
	}
	return x, inspect.OfFlag(errs[1], "--against")
}

// parse reads an answer as an Explanation.
func parse(answer []byte) (*pick.Explanation, error) {
	x := &pick.Explanation{}
	if err := json.Unmarshal(answer, x); err != nil || x.Kind != "Explanation" {
		return nil, &inspect.Error{
			Kind: inspect.Failed, Code: "E_ANSWER", What: "the answer is no Explanation", Err: err,
			Hint: "does eppctl serve listen there? try: --addr HOST:PORT",
		}
	}
	return x, nil
}

func (c *Command) printReplicas(s *out.Streams, d *Replicas) error {
	if c.Format != "json" && c.Format != "yaml" {
		p := &page{w: s.Out, s: s, o: Options{All: c.All, Wide: c.Format == "wide"}}
		p.replicas(d)
		return p.err
	}
	text, err := json.Marshal(d)
	if err != nil {
		return err
	}
	if text = append(text, '\n'); c.Format == "yaml" {
		text, err = out.YAML(text)
	} else {
		text = out.JSON(text)
	}
	if err == nil {
		_, err = s.Out.Write(text)
	}
	return err
}

// replicas shows who picks whom, and below what is not the same.
func (p *page) replicas(d *Replicas) {
	p.sides(&d.A, &d.B)
	t := &out.Table{Indent: "  ", Columns: []out.Column{{Name: "POD"}, {Name: "WHAT"}, {Name: "A", Right: true}, {Name: "B", Right: true}}}
	hidden := 0
	for i := range d.Differences {
		x := &d.Differences[i]
		switch {
		case p.o.All || p.o.Wide:
		case !tells(d, x):
			hidden++
			continue
		case t.Len() == 2*maxRows:
			hidden++
			continue
		}
		pod := "-"
		if x.Pod != nil {
			pod = *x.Pod
		}
		left, right := differingTexts(x)
		t.Add(pod, strings.TrimPrefix(x.Field, "terms."), left, right)
	}
	note := ""
	if hidden > 0 {
		note = fmt.Sprintf("%d smaller or further ones more (-o wide)", hidden)
	}
	switch {
	case len(d.Differences) == 0:
		p.line("DIFFER", "in no input, age or term")
	case t.Len() == 0:
		p.line("DIFFER", note)
	default:
		p.block("DIFFER", note, t)
	}
}

// sides writes what either side picks, one above the other.
func (p *page) sides(a, b *Replica) {
	parts := func(name string, r *Replica) []string {
		total := ""
		if r.Score != nil {
			total = seconds(*r.Score) + " s"
		}
		return []string{name + " " + r.Addr, outcomeText(&r.Pick), deref(r.Pick.Addr), total, marginText(&r.Pick), out.Plural(r.Pods, "pod")}
	}
	x, y := parts("A", a), parts("B", b)
	for i := range x[:len(x)-1] {
		w := max(out.Cells(out.Clean(x[i])), out.Cells(out.Clean(y[i])))
		for _, s := range []*string{&x[i], &y[i]} {
			*s += strings.Repeat(" ", w-out.Cells(out.Clean(*s)))
		}
	}
	p.line("PICK", x...)
	p.line("", y...)
}

// ofItsTime are values that differ with the time at which a serve was started or asked,
// and change no score.
var ofItsTime = []string{"age_ms.index_state", "circuit.answered"}

// tells reports whether a difference is one that shows in the scores or explains one
// that does: the inputs of a term that differs to the millisecond, and anything that
// is no term.
func tells(d *Replicas, x *Difference) bool {
	term, isTerm := strings.CutPrefix(x.Field, "terms.")
	if !isTerm {
		return !slices.Contains(ofItsTime, x.Field) && (!slices.Contains([]string{"total", "rank"}, x.Field) || !same(x))
	}
	term, _, _ = strings.Cut(term, ".")
	return slices.ContainsFunc(d.Differences, func(o Difference) bool {
		return o.Field == "terms."+term && deref(o.Pod) == deref(x.Pod) && !same(&o)
	})
}

// same reports whether two amounts of seconds are the same to the millisecond.
func same(x *Difference) bool {
	a, ok := x.A.(float64)
	b, also := x.B.(float64)
	return ok && also && !visible(a-b)
}

// differingTexts writes both sides, with as many digits as it takes to tell them apart.
func differingTexts(x *Difference) (a, b string) {
	if a, b = differingText(x.Field, x.A), differingText(x.Field, x.B); a == b {
		a, b = exactly(x.A), exactly(x.B)
	}
	return a, b
}

func exactly(v any) string {
	if v, ok := v.(float64); ok {
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return fmt.Sprint(v)
}

// differingText writes a value of either side.
func differingText(field string, v any) string {
	switch v := v.(type) {
	case nil:
		return "-"
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case float64:
		term, isTerm := strings.CutPrefix(field, "terms.")
		switch {
		case strings.HasPrefix(field, "age_ms."):
			return age(&v)
		case field == "total" || isTerm && !strings.Contains(term, "."):
			return seconds(v)
		}
		return strconv.FormatFloat(v, 'g', 6, 64)
	}
	return fmt.Sprint(v)
}
