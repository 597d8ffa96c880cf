package check

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/recording"
	"github.com/eppctl/eppctl/internal/inspect"
	"github.com/eppctl/eppctl/internal/sim/freeport"
	"github.com/eppctl/eppctl/internal/sim/zmtp"
)

// hear runs a check that listens and returns its report.
func hear(t *testing.T, c *Command, config Config) (Report, *inspect.Error) {
	t.Helper()
	c.Format = "json"
	text, err := runConfig(t, c, config)
	var r Report
	if e := json.Unmarshal([]byte(text), &r); e != nil {
		t.Fatalf("%v in %q, err %v", e, text, err)
	}
	return r, err
}

// records is a source of these records.
func records(list ...*recording.Record) func(context.Context, func(*recording.Record)) error {
	return func(_ context.Context, take func(*recording.Record)) error {
		for _, r := range list {
			take(r)
		}
		return nil
	}
}

// TestEndState: a port at which nothing listened at first, and an engine that goes
// away, are judged by how things are at the end.
func TestEndState(t *testing.T) {
	addr, e := freeport.Take("127.0.0.1")
	if e != nil {
		t.Fatal(e)
	}
	spec := pod.Spec{Name: "a", Events: []string{"tcp://" + addr}, Ranks: 1}
	a := &recording.Pod{Name: "a", Ranks: 1, Direction: recording.Dial}
	good := batch(t, 0, stored(uint64(1)<<60, nil, 16))
	c := &Command{Listen: &Listening{Source: "engines", Run: func(_ context.Context, take func(*recording.Record)) error {
		begun := time.Now().UnixNano()
		p, err := zmtp.Listen(addr, zmtp.Options{})
		if err != nil {
			return err
		}
		t.Cleanup(func() { p.Close() })
		take(&recording.Record{Type: recording.TypeNotice, Pod: a, At: begun, Notice: recording.Notice{Kind: recording.Down, Why: "refused"}})
		take(&recording.Record{Type: recording.TypeNotice, Pod: a, At: begun + 3e9, Notice: recording.Notice{Kind: recording.Up}})
		take(&recording.Record{Type: recording.TypeFrame, Pod: a, At: begun + 3e9, Parts: message("", 0, good)})
		return nil
	}}}
	r, err := hear(t, c, Config{Pods: []pod.Spec{spec}})
	// 3 s after Run began, and so some later than the command.
	if err != nil || len(r.Findings) > 0 || len(r.Facts) != 2 || !r.Facts[0].OK || !r.Facts[1].OK || !regexp.MustCompile(`connected after ([3-9]|\d\d)`).MatchString(r.Facts[1].Detail) {
		t.Errorf("err %v, report %+v", err, r)
	}
	// And the other way round.
	p, e := zmtp.Listen("127.0.0.1:0", zmtp.Options{})
	if e != nil {
		t.Fatal(e)
	}
	spec.Events = []string{"tcp://" + p.Addr()}
	c.Listen.Run = func(_ context.Context, take func(*recording.Record)) error {
		take(&recording.Record{Type: recording.TypeNotice, Pod: a, At: 1, Notice: recording.Notice{Kind: recording.Up}})
		p.Close()
		take(&recording.Record{Type: recording.TypeNotice, Pod: a, At: 2, Notice: recording.Notice{Kind: recording.Down, Why: "eof"}})
		return nil
	}
	r, err = hear(t, c, Config{Pods: []pod.Spec{spec}})
	if err == nil || r.Facts[0].OK || len(r.Findings) != 1 || r.Findings[0].Code != "disconnected" {
		t.Errorf("err %v, report %+v", err, r)
	}
}

// TestNotHeard: nothing heard is no good news.
func TestNotHeard(t *testing.T) {
	a, b := &recording.Pod{Name: "a", Direction: recording.Dial}, &recording.Pod{Name: "b", Direction: recording.Listen}
	frame := &recording.Record{Type: recording.TypeFrame, Pod: a, At: 2e9, Parts: message("", 0, batch(t, 0, stored(uint64(1)<<60, nil, 16)))}
	open := func(p *recording.Pod) *recording.Record {
		return &recording.Record{Type: recording.TypePod, Pod: p, At: 1e9}
	}
	fleet := []pod.Spec{{Name: "a"}, {Name: "b"}}
	for _, c := range []struct {
		name string
		past bool
		run  []*recording.Record
		pods []pod.Spec
		want []string
	}{
		{"a recording of nothing", true, nil, nil, []string{"not-heard"}},
		{"of streams without messages", true, []*recording.Record{open(a), open(b)}, nil, []string{"not-heard", "no-events-ever a", "no-events-ever b"}},
		{"of one pod", true, []*recording.Record{open(a), frame}, fleet[:1], nil},
		{"of pages and no stream", true, []*recording.Record{{Type: recording.TypePage, Pod: &recording.Pod{Name: "a"}, At: 1e9}}, nil, []string{"not-heard"}},
		{"of one pod of two", true, []*recording.Record{open(a), frame}, fleet, []string{"not-heard b"}},
		{"of none of two", true, nil, fleet, []string{"not-heard", "not-heard a", "not-heard b"}},
		{"a serve without streams", false, nil, nil, []string{"not-heard"}},
		{"a serve that follows one of two", false, []*recording.Record{open(a), frame}, fleet, []string{"not-heard b"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := hear(t, &Command{ConfigOnly: true, Listen: &Listening{Source: "it", Past: c.past, Run: records(c.run...)}}, Config{Pods: c.pods})
			text, _ := json.Marshal(r)
			if got := strings.Join(codes(t, string(text)), ", "); got != strings.Join(c.want, ", ") || (err != nil) != (c.want != nil) {
				t.Errorf("err %v, findings %q, want %q", err, got, c.want)
			}
		})
	}
}

// TestListened: the report says what it rests on.
func TestListened(t *testing.T) {
	a := &recording.Pod{Name: "a", Direction: recording.Dial}
	frame := func(seq uint64, at int64) *recording.Record {
		return &recording.Record{Type: recording.TypeFrame, Pod: a, At: at, Parts: message("", seq, batch(t, 0, stored(1<<60+seq, nil, 16)))}
	}
	past := &Command{ConfigOnly: true, Listen: &Listening{Source: "recording a.eptap", Past: true, Run: records(frame(0, 1e9), frame(1, 3.5e9))}}
	r, err := hear(t, past, Config{})
	l := r.Listened
	if err != nil || l == nil || l.Source != "recording a.eptap" || l.DurationMs != 2500 || l.Streams != 1 || l.Messages != 2 ||
		l.From == nil || *l.From != "1970-01-01T00:00:01Z" || *l.To != "1970-01-01T00:00:03.5Z" {
		t.Errorf("err %v, listened %+v", err, l)
	}
	if text, _ := runConfig(t, &Command{ConfigOnly: true, Format: "table", Listen: past.Listen}, Config{}); !strings.Contains(text, "listened  2.5 s to recording a.eptap: 2 messages of 1 stream\n") {
		t.Errorf("table\n%s", text)
	}
	past.Listen.Run = records()
	if r, _ := hear(t, past, Config{}); r.Listened == nil || r.Listened.From != nil {
		t.Errorf("of an empty recording %+v", r.Listened)
	}
	live := &Command{ConfigOnly: true, Listen: &Listening{Source: "serve", Run: records(frame(0, 1e9))}}
	if r, _ := hear(t, live, Config{}); r.Listened.From == nil || !strings.HasPrefix(*r.Listened.From, "20") {
		t.Errorf("live %+v", r.Listened)
	}
	if r, _ := hear(t, &Command{ConfigOnly: true}, Config{}); r.Listened != nil {
		t.Errorf("nobody listened: %+v", r.Listened)
	}
}

// TestListenErrors: an error that leaves nothing to report stands alone.
func TestListenErrors(t *testing.T) {
	for _, c := range []struct {
		kind   inspect.Kind
		report bool
	}{{inspect.Usage, false}, {inspect.Failed, false}, {inspect.Unreachable, false}, {inspect.Negative, true}} {
		l := &Listening{Past: true, Run: func(context.Context, func(*recording.Record)) error {
			return &inspect.Error{Kind: c.kind, What: "listening"}
		}}
		text, err := runConfig(t, &Command{ConfigOnly: true, Format: "table", Listen: l}, Config{})
		if err == nil || err.Kind != c.kind || (text != "") != c.report {
			t.Errorf("kind %d: %v, report %q", c.kind, err, text)
		}
	}
	l := &Listening{Run: records(), Before: func(context.Context) ([]Before, error) {
		return nil, &inspect.Error{Kind: inspect.Unreachable, What: "serve"}
	}}
	var e *inspect.Error
	if _, err := runConfig(t, &Command{ConfigOnly: true, Listen: l}, Config{}); !errors.As(err, &e) || e.Kind != inspect.Unreachable {
		t.Errorf("err %v", err)
	}
}
