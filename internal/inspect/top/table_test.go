package top

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/core/view"
)

// Whatever rows are sorted by, and however narrow the screen: the column is there, and
// its header has the mark.
func TestSortedColumnIsMarked(t *testing.T) {
	for _, w := range []int{60, 80, 100, 200} {
		for page := range pages {
			r := busy(t, w, 24)
			r.keys(string(rune('1' + page)))
			for i, name := range r.m.sortable() {
				if name == "" {
					continue
				}
				for _, o := range []order{{i, false}, {i, true}} {
					r.m.orders[page] = o
					mark := "▼"
					if o.reverse {
						mark = "▲"
					}
					header := r.header()
					if !strings.Contains(header, " "+name+mark) && !strings.Contains(header, " "+name[:len(name)-1]+mark) {
						t.Errorf("%d columns, page %d, by %s: no %s at it in %q", w, page+1, name, mark, header)
					}
				}
			}
		}
	}
}

// header is the line of column names.
func (r *rig) header() string {
	for _, l := range strings.Split(r.plain(), "\n") {
		if strings.ContainsAny(l, "▼▲") {
			return l
		}
	}
	return ""
}

// A reason is a word that dashboards, scripts and people look for: it is shown whole.
func TestReasonsAreNotCut(t *testing.T) {
	for _, code := range reasons(t) {
		for _, tc := range []struct {
			at   string
			w    int
			line string
		}{
			{"picks", 100, newLayout(pickColumns, 0, 100).row(&drawing{glyphs: &blockGlyphs}, &view.RecentPick{Reason: &code}, false)},
			{"token ids", 200, newLayout(idsColumns, 0, 200).row(&drawing{glyphs: &blockGlyphs}, &idsRow{ProviderState: &view.ProviderState{Why: code}}, false)},
		} {
			if !strings.Contains(tc.line, code) {
				t.Errorf("%s at %d columns: %s is not whole in %q", tc.at, tc.w, code, tc.line)
			}
		}
		if strings.HasPrefix(code, "parity-") {
			x := &idsRow{ProviderState: &view.ProviderState{Name: native, Parity: &view.Parity{State: "not-run", Why: code}}}
			if l := newLayout(idsColumns, 0, 80).row(&drawing{glyphs: &blockGlyphs}, x, false); !strings.Contains(l, code) {
				t.Errorf("token ids at 80 columns: %s is not whole in %q", code, l)
			}
		}
	}
}

// Why an event stream is not live stands whole on the usual terminal.
func TestStreamReasonsAreNotCut(t *testing.T) {
	also := []reason.Code{
		reason.Disconnected, reason.NoEventsEver, reason.Silent, reason.EventsLate, reason.WrongFraming, reason.Undecodable,
		reason.EventsSkipped, reason.WrongPort, reason.ReplayDead, reason.ReplayMismatch,
	}
	codes := reasons(t, "stream.go")
	for _, c := range also {
		codes = append(codes, string(c))
	}
	for _, code := range codes {
		x := &rankRow{pod: &podRow{PodState: &view.PodState{}}, rank: &view.Rank{Why: code}}
		if l := newLayout(rankColumns, 0, 80).row(&drawing{glyphs: &blockGlyphs}, x, false); !strings.Contains(l, code) {
			t.Errorf("%s is not whole in %q", code, l)
		}
	}
}

var codeLine = regexp.MustCompile(`(?m) Code += "([a-z-]+)"`)

// reasons are all code words of the package reason, or those of one of its files.
func reasons(t *testing.T, files ...string) (codes []string) {
	t.Helper()
	if len(files) == 0 {
		files = []string{"reason.go", "stream.go"}
	}
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join("..", "..", "core", "reason", f))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range codeLine.FindAllStringSubmatch(string(text), -1) {
			codes = append(codes, m[1])
		}
	}
	if len(codes) < 6 {
		t.Fatalf("only %d codes in %v", len(codes), files)
	}
	return codes
}
