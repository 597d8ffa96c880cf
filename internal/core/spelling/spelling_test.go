package spelling

import (
	"fmt"
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	keys := []string{"listen", "pods", "models", "weights", "limits", "scrape"}
	for word, want := range map[string]string{
		"weigths": "weights", "pod": "pods", "Limits": "limits", "scrap": "scrape", "modles": "models", "foo": "", "x": "",
		strings.Repeat("pods", 1<<20): "",
	} {
		if got := Nearest(word, keys); got != want {
			t.Errorf("Nearest(%.20q) = %q, want %q", word, got, want)
		}
	}
}

// The words that are the fewest slips away are a guess, else those that have the word
// as a part, and of many none.
func TestGuess(t *testing.T) {
	words := []string{"alpha", "breaker", "breaker.depth", "breaker.cooldown", "breaker.cooldown_max", "tiers.disk.latency", "tiers.host.latency", "tiers.host.bandwidth", "sim-0", "sim-1"}
	for word, want := range map[string]string{
		"brekaer.depth": "did you mean breaker.depth?",
		"sim-7":         "did you mean sim-0 or sim-1?",
		"cooldown":      "did you mean breaker.cooldown or breaker.cooldown_max?",
		"Latency":       "did you mean tiers.disk.latency or tiers.host.latency?",
		"tiers":         "did you mean tiers.disk.latency, tiers.host.latency or tiers.host.bandwidth?",
		"brea":          "", // a part of four
		"al":            "",
		"foo":           "",
		"":              "",
	} {
		if got := Guess(word, words); got != want {
			t.Errorf("Guess(%q) = %q, want %q", word, got, want)
		}
	}
}

func TestAmong(t *testing.T) {
	var pods []string
	for i := range 20 {
		pods = append(pods, fmt.Sprintf("pod-%02d", i))
	}
	for name, want := range map[string]string{
		"pod05":  "did you mean pod-05?",
		"nobody": "there are pod-00, pod-01, pod-02, pod-03, pod-04, pod-05, pod-06, pod-07, pod-08, pod-09, pod-10, pod-11, pod-12, pod-13, pod-14, pod-15 and 4 more",
	} {
		if got := Among(name, pods); got != want {
			t.Errorf("Among(%q) = %q, want %q", name, got, want)
		}
	}
}
