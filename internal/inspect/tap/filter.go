package tap

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/recording"
)

// Filter says which events are shown. Values of one kind are alternatives, kinds
// must all fit; a negated value excludes. Rows of our own pass every filter. The
// zero value lets everything through.
type Filter struct {
	conds  []cond
	prefix *prefix
}

// cond is the values of one kind.
type cond struct {
	kind    string
	not     bool
	matches []func(e *Entry, ev *event.Event) bool
}

// FilterKinds are the kinds of filters, by the name of their flag.
func FilterKinds() []string {
	return []string{"pod", "rank", "engine", "model", "event", "tier", "lora", "hash", "token-ids"}
}

// Events and Tiers are the words of --event and --tier.
func Events() []string { return []string{"stored", "removed", "cleared", "gap"} }

// Tiers are the words of --tier.
func Tiers() []string { return []string{"gpu", "cpu", "disk", "remote", "shared", "all"} }

// Add adds a value of a kind, or several with commas between them.
func (f *Filter) Add(kind, text string, not bool) error {
	if kind == "token-ids" {
		return f.addTokens(text, not)
	}
	c := f.cond(kind, not)
	for _, v := range strings.Split(text, ",") {
		m, err := matcher(kind, strings.TrimSpace(v))
		if err != nil {
			return err
		}
		c.matches = append(c.matches, m)
	}
	return nil
}

func (f *Filter) cond(kind string, not bool) *cond {
	i := slices.IndexFunc(f.conds, func(c cond) bool { return c.kind == kind && c.not == not })
	if i < 0 {
		f.conds = append(f.conds, cond{kind: kind, not: not})
		i = len(f.conds) - 1
	}
	return &f.conds[i]
}

func (f *Filter) addTokens(text string, not bool) error {
	if f.prefix != nil {
		return fmt.Errorf("found a second list of token ids; expected one")
	}
	var ids []uint32
	for _, field := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(", []\n\t", r) }) {
		id, err := strconv.ParseUint(field, 10, 32)
		if err != nil {
			return fmt.Errorf("found %q; expected a token id", field)
		}
		ids = append(ids, uint32(id))
	}
	if len(ids) == 0 {
		return fmt.Errorf("found no token id")
	}
	f.prefix = newPrefix(ids)
	c := f.cond("token-ids", not)
	c.matches = append(c.matches, func(e *Entry, ev *event.Event) bool { return f.prefix.begins(e.Pod, ev) })
	return nil
}

func matcher(kind, v string) (func(*Entry, *event.Event) bool, error) {
	glob := func(of func(*Entry, *event.Event) string) (func(*Entry, *event.Event) bool, error) {
		if _, err := path.Match(v, ""); err != nil {
			return nil, fmt.Errorf("found %q; expected a name or a pattern such as vllm-a-*", v)
		}
		return func(e *Entry, ev *event.Event) bool {
			name := of(e, ev)
			return name != "" && recording.Glob(v, name) // --not --lora '*': those without
		}, nil
	}
	oneOf := func(words []string, of func(*event.Event) string) (func(*Entry, *event.Event) bool, error) {
		if !slices.Contains(words, v) {
			return nil, fmt.Errorf("found %q; expected one of %s", v, strings.Join(words, ", "))
		}
		return func(_ *Entry, ev *event.Event) bool { return of(ev) == v }, nil
	}
	switch kind {
	case "pod":
		return glob(func(e *Entry, _ *event.Event) string { return nameOf(e.Pod) })
	case "engine":
		return glob(func(e *Entry, _ *event.Event) string { return engineName(e.Pod) })
	case "model":
		return glob(func(e *Entry, _ *event.Event) string { return e.model() })
	case "lora":
		return glob(func(_ *Entry, ev *event.Event) string { return ev.LoRA })
	case "event":
		return oneOf(Events(), func(ev *event.Event) string { return ev.Kind.String() })
	case "tier":
		if v == "host" {
			v = "cpu"
		}
		return oneOf(Tiers(), tierName)
	case "rank":
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("found %q; expected the number of a rank", v)
		}
		return func(e *Entry, _ *event.Event) bool { return e.Pod != nil && e.Pod.Rank == n }, nil
	case "hash":
		return hashPrefix(v)
	}
	return nil, fmt.Errorf("no filter is called %q", kind)
}

// hashPrefix matches events that name a block, as their own or as the parent.
func hashPrefix(text string) (func(*Entry, *event.Event) bool, error) {
	digits := strings.ToLower(strings.TrimPrefix(text, "0x"))
	first, err := strconv.ParseUint(digits+strings.Repeat("0", max(16-len(digits), 0)), 16, 64)
	if err != nil || digits == "" || len(digits) > 16 {
		return nil, fmt.Errorf("found %q; expected the first hexadecimal digits of a block hash", text)
	}
	shift := 64 - 4*len(digits)
	is := func(h uint64) bool { return h>>shift == first>>shift }
	return func(_ *Entry, ev *event.Event) bool {
		return ev.HasParent && is(ev.Parent) || slices.ContainsFunc(ev.Hashes, is)
	}, nil
}

func nameOf(p *recording.Pod) string {
	if p == nil {
		return ""
	}
	return p.Name
}

func rankOf(p *recording.Pod) int {
	if p == nil {
		return 0
	}
	return p.Rank
}

// see lets the filter follow what it has to: every message, shown or not.
func (f *Filter) see(e *Entry) {
	if f.prefix != nil {
		f.prefix.see(e)
	}
}

// shows reports whether an event passes.
func (f *Filter) shows(e *Entry, ev *event.Event) bool {
	for i := range f.conds {
		c := &f.conds[i]
		fits := slices.ContainsFunc(c.matches, func(m func(*Entry, *event.Event) bool) bool { return m(e, ev) })
		if fits == c.not {
			return false
		}
	}
	return true
}

// Admits reports whether anything of the publisher may be shown: the conditions
// that do not ask for the event.
func (f *Filter) Admits(e *Entry) bool { return f.admits(e, "pod", "rank", "engine", "model") }

// AdmitsPod reports whether a pod of this name may be shown, as far as names go.
func (f *Filter) AdmitsPod(name string) bool {
	return f.admits(&Entry{Record: &recording.Record{Pod: &recording.Pod{Name: name}}}, "pod")
}

// admits asks the conditions of some kinds.
func (f *Filter) admits(e *Entry, kinds ...string) bool {
	for i := range f.conds {
		c := &f.conds[i]
		if !slices.Contains(kinds, c.kind) {
			continue
		}
		if slices.ContainsFunc(c.matches, func(m func(*Entry, *event.Event) bool) bool { return m(e, nil) }) == c.not {
			return false
		}
	}
	return true
}
