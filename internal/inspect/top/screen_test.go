package top

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/eppctl/eppctl/internal/core/view"
	"github.com/eppctl/eppctl/internal/inspect/out"
)

// looks matches what turns a look on, or all of them off.
var looks = regexp.MustCompile("\x1b\\[[0-9;]*m")

// everywhere does something at every page and size.
func everywhere(t *testing.T, do func(r *rig, at string)) {
	for _, keys := range []string{"", "a", "2", "3", "a 3", "enter", "G enter", "a enter", "3 enter", "?", "/ x y z", "f", "p < <", "3 G", "2 G", "X", "X G", "G x a", "4", "4 a", "4 G enter", "4 j enter a"} {
		r := busy(t, 80, 24)
		r.keys(keys)
		for _, size := range [][2]int{{60, 12}, {61, 13}, {79, 19}, {80, 24}, {99, 20}, {100, 30}, {119, 40}, {120, 40}, {143, 17}, {200, 60}, {400, 100}} {
			r.send(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
			do(r, fmt.Sprintf("%dx%d %q", size[0], size[1], keys))
		}
	}
}

// No line is wider than the screen, there are never more lines than it has, and
// nothing but looks is sent beside letters: UX-08.
func TestScreenFits(t *testing.T) {
	everywhere(t, func(r *rig, at string) {
		content := r.m.View().Content
		lines := strings.Split(content, "\n")
		if len(lines) != r.m.height {
			t.Errorf("%s: %d lines", at, len(lines))
		}
		for _, l := range lines {
			bare := ansi.Strip(l)
			if n := out.Cells(bare); n > r.m.width {
				t.Errorf("%s: %d columns in %q", at, n, bare)
			}
			if i := strings.IndexFunc(bare, func(c rune) bool { return !unicode.IsGraphic(c) }); i >= 0 {
				t.Errorf("%s: a control character in %q", at, bare)
			}
			if open := looks.FindAllString(l, -1); len(open) > 0 && open[len(open)-1] != "\x1b[m" && open[len(open)-1] != "\x1b[0m" {
				t.Errorf("%s: a look goes on behind %q", at, l)
			}
			if r.m.glyphs == &asciiGlyphs && strings.IndexFunc(bare, func(c rune) bool { return c > 0x7e }) >= 0 {
				t.Errorf("%s: no ASCII: %q", at, bare)
			}
		}
	})
}

// What the keys do can be read whole on the least terminal.
func TestHelpIsNotCut(t *testing.T) {
	for _, l := range busy(t, minWidth, minHeight).m.helpText() {
		if strings.Contains(l, "…") || out.Cells(ansi.Strip(l)) > minWidth {
			t.Errorf("cut: %q", l)
		}
	}
}

// No column of any view, and no word for a pod, goes without a meaning. Those whose
// name says it need none.
func TestHelpHasEveryColumn(t *testing.T) {
	said := []string{"POD", "MODEL", "ENGINE", "ADDRESS", "TIME", "TOKENS", "REQUEST", ""}
	all := ""
	for _, c := range columnHelp {
		all += " " + c[0] + " " + strings.NewReplacer(",", " ", ";", " ", ":", " ", ".", " ").Replace(c[1]) + " "
	}
	names := slices.Concat(namesOf(podColumns), namesOf(rankColumns), namesOf(pickColumns), namesOf(idsColumns))
	for _, s := range states {
		names = append(names, ansi.Strip(string(stateCell(&podRow{PodState: &view.PodState{State: s.word}}))))
	}
	names = append(names, ansi.Strip(string(stateCell(&podRow{PodState: &view.PodState{State: "ok", Draining: true}}))))
	for _, name := range names {
		if !slices.Contains(said, name) && !strings.Contains(all, " "+name+" ") {
			t.Errorf("nothing says what %q means", name)
		}
	}
}

func namesOf[R any](columns []column[R]) (names []string) {
	for _, c := range columns {
		names = append(names, c.name)
	}
	return names
}

// What is told of one pod or one model is told whole, errors from the wire too: what a
// narrow screen has no room for stands in the next line.
func TestDetailsAreNotCut(t *testing.T) {
	long := "HTTP status 503: " + strings.Repeat("the engine says at great length why it cannot. ", 6) + strings.Repeat("ä-word-longer-than-a-line-", 10)
	for _, w := range []int{60, 79, 80, 100, 200} {
		for _, keys := range []string{"enter", "G enter", "G k enter", "G k k enter", "G k k k enter", "/ a - 7 enter enter", "4 enter", "4 j j enter", "4 G enter"} {
			r := busy(t, w, 200)
			for i := range r.fleet.Pods {
				p := &r.fleet.Pods[i]
				p.Telemetry.Error = long
				for k := range p.Ranks {
					p.Ranks[k].Detail = long
				}
			}
			for i := range r.fleet.Tokenizers {
				for k := range r.fleet.Tokenizers[i].Providers {
					r.fleet.Tokenizers[i].Providers[k].Detail = long
				}
			}
			r.frame(time.Second)
			r.keys(keys)
			lines := strings.Split(r.plain(), "\n")
			foot := len(lines) - 4 // below it the selected row, and the keys
			text := strings.Join(lines[4:foot], "\n")
			if strings.Contains(text, "…") {
				t.Errorf("%d columns, %q: cut:\n%s", w, keys, text)
			}
			if words := strings.Join(strings.Fields(text), " "); !strings.Contains(strings.ReplaceAll(words, " ", ""), strings.ReplaceAll(long, " ", "")) {
				t.Errorf("%d columns, %q: what went wrong is not there whole:\n%s", w, keys, text)
			}
		}
	}
}

// Where a narrow screen has no column for the reason, the line about the selected row
// has it: of a pod the reason of its worst rank, of a pick why nothing matched, of a
// provider why it tells no ids.
func TestSelectedRowSaysWhy(t *testing.T) {
	r := busy(t, 80, 24)
	for i := range r.fleet.Pods {
		if p := &r.fleet.Pods[i]; len(p.Ranks) > 1 {
			p.Ranks[0].Why, p.Ranks[1].Why = "", "history-lost"
			p.Telemetry.Error = ""
		}
	}
	r.frame(time.Second)
	r.keys("/ c - 0 enter")
	r.has("> vllm-c-0", "history-lost")
	r.keys("esc 3 j j j j")
	r.has("tokenize-slow")
	r.keys("4 G")
	r.has("other  tokenize  failing  tokenizer-missing")
}

// ASCII changes glyphs, and moves nothing.
func TestASCIIMovesNothing(t *testing.T) {
	for _, keys := range []string{"", "2", "3", "? ?"} {
		r := busy(t, 120, 40)
		r.keys(keys)
		block := strings.Split(r.plain(), "\n")
		r.keys("a")
		for i, l := range strings.Split(r.plain(), "\n") {
			if out.Cells(l) != out.Cells(block[i]) {
				t.Errorf("%q: line %d has %d columns in ASCII and %d in blocks", keys, i, out.Cells(l), out.Cells(block[i]))
			}
		}
	}
}

// TOP-02
func TestTooSmall(t *testing.T) {
	r := busy(t, 59, 11)
	if got := strings.TrimSpace(r.plain()); got != "terminal too small: 59x11, need 60x12" {
		t.Errorf("%q", got)
	}
	for _, size := range [][2]int{{20, 5}, {10, 5}, {58, 2}} { // where a line has no room for it, more have
		r.send(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
		if got, want := strings.Join(strings.Fields(r.plain()), " "), fmt.Sprintf("terminal too small: %dx%d, need 60x12", size[0], size[1]); got != want {
			t.Errorf("%v: %q", size, got)
		}
	}
	r.send(tea.WindowSizeMsg{Width: 100, Height: 30})
	r.has("vllm-a-1", "REQUESTS")
	for _, size := range [][2]int{{0, 0}, {1, 1}, {5, 100}, {500, 2}} {
		r.send(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
		for _, l := range strings.Split(strings.TrimSuffix(r.plain(), "\n"), "\n") {
			if out.Cells(l) > size[0] {
				t.Errorf("%v: %q", size, l)
			}
		}
	}
}

// TOP-03: a cell that is cut keeps its look, ends it, and has its width.
func TestCellsAreCutWhole(t *testing.T) {
	for _, tc := range []struct {
		c    cell
		w    int
		want string
	}{
		{text(bad, "OPEN"), 3, "\x1b[35mOP…\x1b[m"},
		{text(bad, "OPEN"), 4, "\x1b[35mOPEN\x1b[m"},
		{text(bad, "OPEN"), 6, "\x1b[35mOPEN\x1b[m  "},
		{text(bad, "OPEN") + plain(" 1"), 4, "\x1b[35mOPE…\x1b[m"},
		{text(bad, "OPEN") + plain(" 12"), 6, "\x1b[35mOPEN\x1b[m …"},
		{plain("日本語"), 5, "日本…"},
		{plain("日本語"), 4, "日… "},
		{plain("abc"), 0, ""},
	} {
		if got := tc.c.fit(tc.w, lipgloss.Left); got != tc.want {
			t.Errorf("%v in %d: %q, want %q", tc.c, tc.w, got, tc.want)
		}
	}
}

// Something is never drawn as nothing, and not all never as all.
func TestBars(t *testing.T) {
	for _, g := range []*glyphs{&blockGlyphs, &asciiGlyphs} {
		for _, share := range []float64{-1, 0, 1e-9, 0.01, 0.5, 0.999999, 1, 7} {
			s := ansi.Strip(string(g.bar(share, 6, cool)))
			if n := out.Cells(s); n != 6 {
				t.Errorf("%g: %d columns", share, n)
			}
			if nothing := s == strings.Repeat(g.empty, 6); nothing != (share <= 0) {
				t.Errorf("%g: %q", share, s)
			}
			if all := s == strings.Repeat(g.full, 6); all != (share >= 1) {
				t.Errorf("%g: %q", share, s)
			}
		}
		for _, amounts := range [][4]int{{}, {1, 1, 1, 1}, {100, 0, 0, 0}, {99, 1, 0, 0}, {1, 1000, 1000, 1000}, {0, 0, 0, 1 << 40}, {-5, 0, 0, 0}} {
			whole := max(amounts[0]+amounts[1]+amounts[2]+amounts[3], 0)
			c := g.stack(amounts, whole, 8)
			if c.width() != 8 {
				t.Errorf("%v: %d columns", amounts, c.width())
			}
			for i, n := range amounts {
				if drawn := strings.Contains(ansi.Strip(string(c)), g.tiers[i]); drawn != (n > 0) {
					t.Errorf("%v: tier %d drawn: %v, in %v", amounts, i, drawn, c)
				}
			}
		}
	}
}

// TOP-04, TOP-11: a server that is gone is told of, with the age of what is shown,
// which goes on; one that comes back is shown again.
func TestLostAndFound(t *testing.T) {
	r := busy(t, 120, 40)
	r.has("LIVE", " 0.3\n")
	r.down = errors.New("cannot reach serve at 127.0.0.1:9004: connection refused; serve is not running here")
	r.frame(time.Second)
	r.has("LOST 1.0 s", "disconnected, last data 1.0 s ago: cannot reach serve at 127.0.0.1:9004: connection refused; trying on", " 1.3\n")
	r.time = r.time.Add(3 * time.Second)
	r.has("LOST 4.0 s", "last data 4.0 s ago", " 4.3\n")
	r.hasNot("LIVE")
	r.down = nil
	r.frame(time.Second)
	r.has("LIVE", " 0.3\n")
	r.hasNot("disconnected")
	// An answer that never comes is no news either.
	r.time = r.time.Add(2*r.m.interval + patience + time.Second)
	r.has("disconnected, last data 5.0 s ago; trying on")
}

// A serve that is another process counts from zero: no rate goes through that.
func TestRestartedServe(t *testing.T) {
	r := busy(t, 120, 40)
	r.has("REQUESTS  ")
	r.hasNot("REQUESTS  ?/s")
	r.fleet = fleet()
	r.fleet.Run = "another"
	r.frame(time.Second)
	r.has("REQUESTS  ?/s")
	r.traffic()
	r.frame(time.Second)
	r.has("REQUESTS  ")
	r.hasNot("REQUESTS  ?/s")
}

func TestNumbers(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.04: "0.0", 9.94: "9.9", 9.96: "10", 9999: "9999", 10_000: "10.0k", 99_600: "100k", 1_840_000: "1.8M", 999_600: "1.0M", 7e9: "7.0G", 3e15: "3000T"} {
		if got := amount(v); got != want {
			t.Errorf("%g: %q, want %q", v, got, want)
		}
	}
	for d, want := range map[time.Duration]string{-time.Second: "0.0", 300 * time.Millisecond: "0.3", 9960 * time.Millisecond: "10", 999 * time.Second: "999", 1000 * time.Second: "17m", 5 * time.Hour: "5h", 100 * time.Hour: "4d", 1 << 62: "999d"} {
		if got := age(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
	for v, want := range map[float64]string{0: "0", 1.27e-5: "<1", 0.0049: "<1", 0.005: "1", 0.5: "50", 0.9999: "99", 1: "100"} {
		if got := percent(v, true); got != want {
			t.Errorf("%g: %q, want %q", v, got, want)
		}
	}
}
