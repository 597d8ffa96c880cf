package top

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
)

// keyCases are all keys, with what stands on the screen once they are pressed behind
// others, and what does not; rows stand in the order of their names.
var keyCases = []struct{ before, key, has, not string }{
	{"", "j", "> mögel", ""},
	{"", "down", "> mögel", ""},
	{"G", "k", "> vllm-b-2", ""},
	{"G", "up", "> vllm-b-2", ""},
	{"", "G", "> vllm-c-0", ""},
	{"", "end", "> vllm-c-0", ""},
	{"G", "g", "> evil", ""},
	{"G", "home", "> evil", ""},
	{"", "pgdown", "> vllm-c-0", ""},
	{"", "ctrl+d", "> vllm-c-0", ""},
	{"G", "pgup", "> evil", ""},
	{"G", "ctrl+u", "> evil", ""},
	{"?", "pgdown", "COMMANDS", "KEYS"},
	{"? G", "pgup", "SYNC FOR", "kept to step back"},

	{"j", "enter", "COURSE", "TIERS"},
	{"j enter", "esc", "TIERS", "COURSE"},
	{"j enter", "backspace", "TIERS", "COURSE"},
	{"3 enter", "esc", "RUNNER-UP", "SCORES"},
	{"/ b enter", "esc", "> evil", "filter b"},
	{"G", "x", "rank 1", ""},
	{"", "X", "rank 1", ""},
	{"j j", "e", "SCORES", "TIERS"},
	{"2", "1", "TIERS", "PURGE"},
	{"", "2", "PURGE", "TIERS"},
	{"", "3", "RUNNER-UP", "TIERS"},
	{"", "4", "PARITY", "TIERS"},
	{"", "tab", "PURGE", "TIERS"},
	{"tab tab tab", "tab", "TIERS", "PARITY"},
	{"", "shift+tab", "PARITY", "TIERS"},
	{"enter", "3", "RUNNER-UP", "COURSE"},

	{"", "s", "STAT▼", "POD▼"},
	{"s", "S", "POD▼", "STAT▼"},
	{"", "r", "POD▲", "POD▼"},
	{"", "/", "filter: _", ""},
	{"", "f", "only faults", "vllm-a-1"},
	{"", ":", ":_", ""},
	{": e v", "tab", ":events_", ""},
	{": e v tab", "enter", "PURGE", "TIERS"},
	{": e v", "ctrl+u", ":_", ""},
	{": e v", "backspace", ":e_", ""},
	{":", "backspace", "? help", ":_"},
	{": e v", "esc", "TIERS", ":ev"},

	{"", "p", "PAUSED 11:43:07", "LIVE"},
	{"p", "p", "LIVE 11:43:07", "PAUSED"},
	{"", "space", "PAUSED 11:43:07", "LIVE"},
	{"", "<", "PAUSED 11:43:06", ""},
	{"", "left", "PAUSED 11:43:06", ""},
	{"", ",", "PAUSED 11:43:06", ""},
	{"< < <", ">", "PAUSED 11:43:05", ""},
	{"< < <", "right", "PAUSED 11:43:05", ""},
	{"< < <", ".", "PAUSED 11:43:05", ""},
	{"", "[", "PAUSED 11:42:57", ""},
	{"[", "]", "PAUSED 11:43:07", ""},
	{"", "+", "11:43:07  2s", ""},
	{"", "=", "11:43:07  2s", ""},
	{"", "-", "11:43:07  500ms", ""},
	{"", "w", "wrote eppctl-top-20261129T114307-16.json", ""},
	{"", "a", "PODv", "▼"},
	{"a", "a", "POD▼", "PODv"},
	{"", "?", "KEYS", "TIERS  "},
	{"", "h", "KEYS", "TIERS  "},
	{"?", "h", "POD▼", "KEYS"},
}

func TestKeys(t *testing.T) {
	for _, tc := range keyCases {
		r := busy(t, 120, 24)
		r.keys(tc.before)
		r.plain() // as each key is drawn
		r.keys(tc.key)
		s := r.plain()
		if !strings.Contains(s, tc.has) || tc.not != "" && strings.Contains(s, tc.not) {
			t.Errorf("%q behind %q: want %q and no %q on\n%s", tc.key, tc.before, tc.has, tc.not, s)
		}
	}
}

// The help names no key that is not tried above; those that end or leave top show
// nothing, and have tests of their own.
func TestKeysOfTheHelp(t *testing.T) {
	tried := map[string]bool{"q": true, "ctrl+c": true}
	for _, tc := range keyCases {
		tried[tc.key] = true
	}
	for _, k := range keys {
		for _, name := range strings.Fields(strings.NewReplacer(",", " ", "↓", "down", "↑", "up", "pgdn", "pgdown").Replace(k.keys)) {
			if !tried[name] {
				t.Errorf("nobody presses %q: %s", name, k.does)
			}
		}
	}
}

// ctrl+z hands the terminal back to the shell for a while, as everywhere.
func TestSuspend(t *testing.T) {
	r := busy(t, 80, 24)
	_, cmd := r.m.Update(press("ctrl+z"))
	if cmd == nil {
		t.Fatal("nothing is done")
	}
	if msg := cmd(); msg != (tea.SuspendMsg{}) {
		t.Errorf("%T", msg)
	}
}

// A pause says how one gets on, and out of it; a file has no out.
func TestHintsOfAPause(t *testing.T) {
	for _, w := range []int{60, 80, 120} {
		r := busy(t, w, 24)
		r.hasNot("p live")
		for _, keys := range []string{"p", "enter"} {
			r.keys(keys)
			r.has("p live", "q quit")
			r.hasNot("p pause")
		}
		r.keys("esc")
		r.has("< > step")
		r.keys("p")
		r.hasNot("p live")
	}
	r := shown(t, readFile(t, saved(t, 3)))
	r.has("< > step", "q quit")
	r.hasNot("p live", "p pause", "e explain")
}
