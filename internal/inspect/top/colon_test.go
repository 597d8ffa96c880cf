package top

import (
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
)

// types types a line letter by letter.
func (r *rig) types(line string) {
	for _, c := range line {
		k := tea.Key{Text: string(c), Code: c}
		if c == ' ' {
			k.Code = tea.KeySpace
		}
		r.send(tea.KeyPressMsg(k))
	}
}

func (r *rig) command(line string) {
	r.types(":" + line)
	r.keys("enter")
}

func TestCommands(t *testing.T) {
	for line, want := range map[string]string{
		"events":            "REMOVED",
		"ev":                "REMOVED", // its beginning will do
		"picks":             "RUNNER-UP",
		"ids":               "PARITY",
		" pods ":            "TIERS",
		"pod vllm-a-7":      "HW thermal slowdown",
		"model mistral":     `no model "mistral"`,
		"model new":         "MODEL     new",
		"pod nobody":        `no pod "nobody" in this frame`,
		"pod":               "pod: expected NAME: look into a pod",
		"sort x":            `found "x"; expected a column to sort by: POD STATE`,
		"sort -":            `found "-"; expected a column`,
		"sort QUEUE":        "TIERS",
		"filter vllm-a":     "filter vllm-a",
		"at -10s":           "PAUSED 11:42:57",
		"at 11:43:00":       "PAUSED 11:43:00",
		"at 11:42":          "PAUSED 11:42:07", // the oldest is younger
		"at 09:00":          "PAUSED 11:42:07",
		"at x":              `at: found "x"; expected a time such as 11:42:07, or -30s`,
		"interval 5s":       "LIVE 11:43:07  5s",
		"interval 1ms":      `interval: found "1ms"; expected 100ms to 1m`,
		"write":             "wrote eppctl-top-",
		"help":              ":interval TIME",
		"nonsense":          `no command "nonsense"; ? lists them`,
		"":                  "TIERS",
		"e\x1b]0;x\a vents": `no command "e\\x1b]0;x\\x07"`,
	} {
		r := busy(t, 120, 60)
		r.command(line)
		if s := r.plain(); !strings.Contains(s, want) {
			t.Errorf("%q: no %q on the screen:\n%s", line, want, s)
		}
	}
	r := busy(t, 120, 40)
	r.command("quit")
	if r.wrote["quit"] == "" {
		t.Error(":quit does not quit")
	}
	r.command("at -30s")
	r.has("PAUSED 11:42:")
	r.command("live")
	r.has("LIVE 11:43:07")
	r.command("sort -waIT")
	if got := r.names(); got[len(got)-1] != "vllm-b-0" {
		t.Errorf("the longest queue is not last: %v", got)
	}
	r.types(":events")
	r.has(":events_")
	r.keys("esc")
	r.hasNot("REMOVED", ":events")
	r.types(":")
	r.keys("backspace j")
	r.hasNot(":j")
	for _, l := range []string{"pods", "at -5s", "write", "live", "pod x", "sort POD"} {
		newRig(t, 80, 24).command(l) // before the first frame
	}
}

// tab goes on as far as there is one way.
func TestCompletion(t *testing.T) {
	r := busy(t, 120, 40)
	r.fleet.Pods[0].Name = "vllm-\x1b[7m"
	for line, want := range map[string]string{
		"": "", "e": "events", "m": "model", "x": "x", "po": "pod", "pod ": "pod ", "pod v": "pod vllm-", "pod vllm-c": "pod vllm-c-0", "pod m": "pod mögel-pod-mit-langem-namen-aus-dem-dorf",
		"sort re": "sort req/s", "sort Q": "sort Q", "mod ne": "model new", "at 1": "at 1", "zz y": "zz y",
	} {
		if got := r.m.complete(line); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
	r.types(":pod vllm-c")
	r.keys("tab enter")
	r.has("POD       vllm-c-0")
	long := strings.Repeat("y", 2*maxCommand)
	r.types(":" + long)
	if n := len(r.m.typed); n != maxCommand {
		t.Errorf("%d letters typed", n)
	}
	r.has("y_")
}

// The last time of that name is meant, never one to come.
func TestTimeOfDay(t *testing.T) {
	now := time.Date(2026, 11, 30, 0, 5, 0, 500, time.UTC)
	for in, want := range map[string]string{"00:04": "2026-11-30 00:04:00", "00:05:00": "2026-11-30 00:05:00", "23:59:59": "2026-11-29 23:59:59", "00:06": "2026-11-29 00:06:00"} {
		got, err := timeOfDay(in, now)
		if err != nil || got.Format(time.DateTime) != want {
			t.Errorf("%s: %v, %v; want %s", in, got, err, want)
		}
	}
}

// A key that asks for a frame starts no second clock beside the one that polls.
func TestKeysDoNotMultiplyPolls(t *testing.T) {
	r := busy(t, 120, 40)
	frames, timers, asked := len(r.m.history.frames), r.timers, len(r.asked)
	for range 5 {
		r.keys("enter esc")
	}
	if n := len(r.asked) - asked; n != 5 || r.timers != timers {
		t.Fatalf("5 keys ask for %d frames, whose answers begin %d timers", n, r.timers-timers)
	}
	if n := len(r.m.history.frames); n != frames {
		t.Errorf("%d frames are kept of one instant", n-frames+1)
	}
	if r.frame(time.Second); r.timers != timers+1 {
		t.Errorf("a poll's answer begins %d timers", r.timers-timers)
	}
}
