package picks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/eppctl/eppctl/internal/core/view"
	"github.com/eppctl/eppctl/internal/inspect"
	"github.com/eppctl/eppctl/internal/inspect/out"
)

func TestMain(m *testing.M) {
	time.Local = time.UTC // terminals get local times
	goleak.VerifyTestMain(m)
}

// script answers with one page after the other, and ends the context with the last.
type script struct {
	pages []any // inspect.PicksAfter or error
	asked []uint64
	end   context.CancelFunc
}

func (s *script) PicksAfter(_ context.Context, _ string, seq uint64) (inspect.PicksAfter, error) {
	s.asked = append(s.asked, seq)
	if len(s.pages) == 0 {
		s.end()
		return inspect.PicksAfter{}, context.Canceled
	}
	next := s.pages[0]
	s.pages = s.pages[1:]
	if err, ok := next.(error); ok {
		return inspect.PicksAfter{}, err
	}
	return next.(inspect.PicksAfter), nil
}

// page holds decisions from..to of a run.
func page(t *testing.T, run string, missed int, from, to uint64) inspect.PicksAfter {
	t.Helper()
	p := inspect.PicksAfter{Run: run, Last: to, Newest: to, Missed: missed}
	for seq := from; seq <= to; seq++ {
		pod, score := "vllm-0\x1b[2J", 0.25
		x := view.RecentPick{Seq: seq, RequestID: "id-" + string(rune('a'+seq)), At: "2026-11-29T11:42:07.5Z", Model: "m", Outcome: "picked",
			Pod: &pod, Score: &score, Tokens: 200, Cached: 150}
		if seq%2 == 0 {
			why := "no-eligible-pod"
			x.Pod, x.Score, x.Reason, x.Outcome, x.Tokens, x.Cached = nil, nil, &why, "none", 0, 0
		}
		b, err := json.Marshal(x)
		if err != nil {
			t.Fatal(err)
		}
		p.Picks = append(p.Picks, b)
	}
	return p
}

func run(t *testing.T, c Command, width int, pages ...any) (stdout, stderr string, s *script) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s = &script{pages: pages, end: cancel}
	var o, e bytes.Buffer
	if err := c.Run(ctx, s, &out.Streams{Out: &o, Err: &e, OutTTY: width > 0, Width: width}); err != nil {
		t.Fatal(err)
	}
	return o.String(), e.String(), s
}

// What was missed, another serve and one that is away are told where they happened,
// and the cursor goes on from where it was.
func TestFollow(t *testing.T) {
	text, errs, s := run(t, Command{Last: 2, Follow: true, Format: "table"}, 0,
		page(t, "one", 0, 1, 5), page(t, "one", 0, 6, 5),
		page(t, "one", 0, 6, 6), page(t, "one", 7, 14, 14), errors.New("cannot reach serve\x1b"), errors.New("cannot reach serve\x1b"),
		inspect.PicksAfter{Run: "two", Last: 1}, page(t, "two", 0, 1, 1), page(t, "two", 0, 2, 1))
	lines := strings.Split(strings.TrimSpace(text), "\n")
	want := []string{"TIME", "id-e", "id-f", "id-g", "MISSED            7 decisions came and left", "id-o", "RESTART", "id-b"}
	if len(lines) != len(want) {
		t.Fatalf("%d lines, want %d:\n%s", len(lines), len(want), text)
	}
	for i := range want {
		if !strings.Contains(lines[i], want[i]) {
			t.Errorf("line %d is %q, want %q in it", i, lines[i], want[i])
		}
	}
	if !strings.HasPrefix(lines[2], "2026-11-29T11:42:07.5Z") || !strings.Contains(lines[2], `vllm-0\x1b[2J`) || !strings.Contains(lines[2], " 75 ") {
		t.Errorf("a decision is %q", lines[2])
	}
	if !strings.Contains(lines[1], "none") || !strings.Contains(lines[1], "no-eligible-pod") {
		t.Errorf("a refusal is %q", lines[1])
	}
	if errs != "warn: cannot reach serve\\x1b\npicks: 5 decisions, 7 missed\n" {
		t.Errorf("stderr %q", errs)
	}
	if got, want := s.asked, []uint64{0, 5, 5, 6, 14, 14, 14, 0, 1, 1}; !slices.Equal(got, want) {
		t.Errorf("asked behind %v, want %v", got, want)
	}
}

// A terminal that has no room for all columns has those that explain is asked by: which
// request went where, and how much of it was there. None is cut.
func TestNarrow(t *testing.T) {
	for width, want := range map[int]string{
		60:  "TIME          POD                TOKENS   HIT%   SCORE s",
		80:  "TIME          POD                HIT%  REQUEST",
		120: "TIME          POD                TOKENS   HIT%   SCORE s  REASON                  REQUEST",
		200: "TIME          POD                TOKENS   HIT%   SCORE s    MARGIN  RUNNER-UP         REASON                  MODEL                     REQUEST",
	} {
		text, _, _ := run(t, Command{Last: 1, Format: "table"}, width, page(t, "one", 0, 1, 1), page(t, "one", 0, 2, 1))
		if header, _, _ := strings.Cut(text, "\n"); header != want {
			t.Errorf("%d columns: %q, want %q", width, header, want)
		}
	}
	whole, most := page(t, "one", 0, 1, 1), page(t, "one", 0, 3, 3)
	whole.Picks[0] = bytes.ReplaceAll(whole.Picks[0], []byte(`"cached_tokens":150`), []byte(`"cached_tokens":200`))
	most.Picks[0] = bytes.ReplaceAll(most.Picks[0], []byte(`"cached_tokens":150`), []byte(`"cached_tokens":199`))
	for p, want := range map[*inspect.PicksAfter]string{&whole: " 100 ", &most: " 99 "} {
		if text, _, _ := run(t, Command{Last: 1, Format: "table"}, 0, *p, *p); !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestLastAlone(t *testing.T) {
	text, errs, _ := run(t, Command{Last: 3, Format: "jsonl"}, 0, page(t, "one", 0, 1, 5), page(t, "one", 0, 6, 5))
	if lines := strings.Count(text, "\n"); lines != 3 || errs != "" || !strings.HasPrefix(text, `{"seq":3,`) {
		t.Errorf("%d lines, stderr %q:\n%s", lines, errs, text)
	}
	text, _, _ = run(t, Command{Last: 1, Format: "table"}, 40, page(t, "one", 0, 1, 1), page(t, "one", 0, 2, 1))
	for line := range strings.Lines(text) {
		if out.Cells(strings.TrimSuffix(line, "\n")) > 40 {
			t.Errorf("wider than the terminal: %q", line)
		}
	}
	if !strings.Contains(text, "11:42:07.500") || strings.Contains(text, "…") {
		t.Errorf("no time of the day:\n%s", text)
	}
}

// busy is a serve that decides more, and forgets, whenever it is asked.
type busy struct {
	next, more, kept uint64
	runs             []string // by question, the last one for ever
	t                *testing.T
	asked            int
}

func (s *busy) PicksAfter(_ context.Context, _ string, seq uint64) (inspect.PicksAfter, error) {
	if s.asked++; s.asked > 100 {
		return inspect.PicksAfter{}, errors.New("asked for ever")
	}
	s.next += s.more
	oldest := s.next - min(s.kept, s.next)
	from := max(min(seq, s.next), oldest) + 1
	p := page(s.t, s.runs[min(s.asked, len(s.runs))-1], int(from-1-min(seq, from-1)), from, min(from+2, s.next))
	p.Newest = s.next
	return p, nil
}

// TestBeginEnds: a serve that decides faster than it is asked is told from another one,
// and what left it in between is no gap among the last ones.
func TestBeginEnds(t *testing.T) {
	for name, c := range map[string]struct {
		serve busy
		lines string
	}{
		"goes on":  {busy{next: 12, more: 1, kept: 100, runs: []string{"one"}}, "10 11 12 13 14 15"},
		"forgets":  {busy{next: 12, more: 10, kept: 4, runs: []string{"one"}}, "29 30 31"},
		"begins":   {busy{more: 1, kept: 100, runs: []string{"one"}}, "1"},
		"restarts": {busy{next: 5, more: 1, kept: 100, runs: []string{"one", "two"}}, "4 5 6 7 8 9"},
	} {
		t.Run(name, func(t *testing.T) {
			c.serve.t = t
			var o bytes.Buffer
			if err := (&Command{Last: 6, Format: "jsonl"}).Run(t.Context(), &c.serve, &out.Streams{Out: &o}); err != nil {
				t.Fatal(err)
			}
			var seqs []string
			for line := range strings.Lines(o.String()) {
				var p view.RecentPick
				if err := json.Unmarshal([]byte(line), &p); err != nil {
					t.Fatal(err)
				}
				seqs = append(seqs, strconv.FormatUint(p.Seq, 10))
			}
			if got := strings.Join(seqs, " "); got != c.lines {
				t.Errorf("%s, want %s", got, c.lines)
			}
		})
	}
}

// A notice is an object among the decisions.
func TestNoticeInJSON(t *testing.T) {
	text, _, _ := run(t, Command{Follow: true, Format: "jsonl"}, 0, page(t, "one", 0, 1, 0), page(t, "one", 2, 3, 3))
	first, _, _ := strings.Cut(text, "\n")
	if first != `{"apiVersion":"eppctl/v1","kind":"Notice","notice":"missed","count":2}` {
		t.Errorf("the notice is %s", first)
	}
}
