package serve

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/chat"
	"github.com/eppctl/eppctl/internal/core/pod"
)

func writeText(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// rendered is the text of the ids that the native tokenizer of these settings gives
// for hello, by trying which text has them.
func rendered(t *testing.T, settings Tokenizer, candidates ...string) string {
	t.Helper()
	r := newChainRig(t, Model{Tokenizer: settings}, nil)
	a := r.ask(chatPath, hello)
	if a.Provider != "native" {
		t.Fatalf("%+v", a)
	}
	for _, c := range candidates {
		ids, _, err := r.loaded()["base"].EncodeText(t.Context(), c, false)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Equal(ids, a.IDs) {
			return c
		}
	}
	return "something else"
}

// TestEngineSettings: what an engine was started with shows in the prompt of a chat.
func TestEngineSettings(t *testing.T) {
	whole := modelFolder(t, nil)
	template := func(text string) string {
		return writeText(t, filepath.Join(t.TempDir(), "chat.jinja"), text)
	}
	dates := func(zone string) []string { // midnight may come before the text is made
		z, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		now := time.Now().In(z)
		return []string{now.Format("2006-01-02"), now.Add(time.Hour).Format("2006-01-02")}
	}
	const kind = `{{ 'string' if messages[0].content is string else 'parts' }}`
	for name, c := range map[string]struct {
		settings Tokenizer
		want     string // "" = the date in the time zone
	}{
		"template":       {Tokenizer{ChatTemplate: template(`Q: {{ messages[0].content }}`)}, "Q: Replica meadow winter."},
		"kwargs":         {Tokenizer{ChatTemplate: template(`{{ mood }} {{ deep.list[1] }}`), Kwargs: `{"mood":"calm","deep":{"list":[1,2.0]}}`}, "calm 2.0"},
		"content string": {Tokenizer{ChatTemplate: template(kind), ContentFormat: "string"}, "string"},
		"content openai": {Tokenizer{ChatTemplate: template(kind), ContentFormat: "openai"}, "parts"},
		// Two zones that never have the same date.
		"far west": {Tokenizer{ChatTemplate: template(`{{ strftime_now('%Y-%m-%d') }}`), TimeZone: "Etc/GMT+12"}, ""},
		"far east": {Tokenizer{ChatTemplate: template(`{{ strftime_now('%Y-%m-%d') }}`), TimeZone: "Etc/GMT-14"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.settings.Source = whole
			want := []string{c.want}
			if c.want == "" {
				want = dates(c.settings.TimeZone)
			}
			if got := rendered(t, c.settings, want...); !slices.Contains(want, got) {
				t.Errorf("none of %q", want)
			}
		})
	}
	t.Run("no zone", func(t *testing.T) {
		r := newChainRig(t, Model{Tokenizer: Tokenizer{Source: whole, ChatTemplate: template(`{{ strftime_now('%Y') }}`)}}, nil)
		if a := r.ask(chatPath, hello); a.Provider != "" || !strings.Contains(tried(a), "native request-not-renderable") {
			t.Errorf("%+v", a)
		}
	})
	t.Run("no such template", func(t *testing.T) {
		r := newChainRig(t, Model{Tokenizer: Tokenizer{Source: whole, ChatTemplate: "/nowhere.jinja"}}, nil)
		if a := r.ask(chatPath, hello); !strings.Contains(a.Tried[0].Detail, "/nowhere.jinja") || a.Tried[0].Why != "tokenizer-unloadable" {
			t.Errorf("%+v", a)
		}
	})
}

// TestEngineOfPods: whose chats a model's are, unless it is configured.
func TestEngineOfPods(t *testing.T) {
	for name, c := range map[string]struct {
		configured string
		pods       []pod.Engine
		want       chat.Engine
	}{
		"nobody":     {"", nil, chat.VLLM},
		"vLLM":       {"", []pod.Engine{pod.EngineVLLM}, chat.VLLM},
		"SGLang":     {"", []pod.Engine{pod.EngineSGLang, pod.EngineUnknown, pod.EngineSGLang}, chat.SGLang},
		"not known":  {"", []pod.Engine{pod.EngineUnknown}, chat.VLLM},
		"both":       {"", []pod.Engine{pod.EngineSGLang, pod.EngineVLLM}, chat.VLLM},
		"configured": {"sglang", []pod.Engine{pod.EngineVLLM}, chat.SGLang},
	} {
		t.Run(name, func(t *testing.T) {
			table := pod.NewTable()
			for i, e := range c.pods {
				at := netip.AddrPortFrom(netip.MustParseAddr("10.0.0.1"), uint16(8000+i))
				if _, err := table.Add(pod.Spec{Name: at.String(), Address: at.String(), Engine: e, Model: "base", Ranks: 1}, at); err != nil {
					t.Fatal(err)
				}
			}
			x := tokens{set: table.Snapshot}
			if got := x.engineOf(&Model{Name: "base", Tokenizer: Tokenizer{Engine: c.configured}})(); got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

// A model is loaded anew when its pods turn out to be of another engine.
func TestEngineIsFollowed(t *testing.T) {
	whole := modelFolder(t, nil)
	r := newChainRig(t, Model{}, nil)
	table := pod.NewTable()
	r.tokens.set = table.Snapshot
	n := startNative("base", Tokenizer{Source: whole}, hub, r.engineOf(&Model{Name: "base"}), r.releaseOf(&Model{Name: "base"}), r.turn, r.tokens.log)
	defer n.Close()
	n.wait(t.Context())
	before := n.current()
	at := netip.MustParseAddrPort("10.0.0.1:8000")
	if _, err := table.Add(pod.Spec{Name: "p", Address: at.String(), Engine: pod.EngineSGLang, Model: "base", Ranks: 1}, at); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); n.current() == before || n.current() == nil; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it goes on as before")
		}
	}
}

// TestEngineSettingsOfFile: the settings as they stand in a file, and what is wrong
// with them, by line.
func TestEngineSettingsOfFile(t *testing.T) {
	load := func(section string) (*Config, error) {
		text := onePod("p") + "models:\n- name: m\n  tokenizer:\n    source: Qwen/Qwen3-8B\n" + section
		return LoadConfig(writeText(t, filepath.Join(t.TempDir(), "eppctl.yaml"), text))
	}
	c, err := load(`    chat_template: /etc/chat.jinja
    content_format: openai
    time_zone: Europe/Berlin
    start_date: 2026-01-31
    chat_template_kwargs:
      enable_thinking: false
      "b": [1, 2.0, "x\n", null, {c: -3}]
      a: yes please
`)
	if err != nil {
		t.Fatal(err)
	}
	got := c.Models[0].Tokenizer
	if want := `{"enable_thinking":false,"b":[1,2.0,"x\n",null,{"c":-3}],"a":"yes please"}`; string(got.Kwargs) != want {
		t.Errorf("got %s, want %s", got.Kwargs, want)
	}
	if got.ChatTemplate != "/etc/chat.jinja" || got.ContentFormat != "openai" || got.TimeZone != "Europe/Berlin" || got.StartDate != "2026-01-31" {
		t.Errorf("%+v", got)
	}
	for section, want := range map[string]string{
		"    content_format: parts\n":                          `:7:`,
		"    time_zone: Mars/Olympus\n":                        `IANA`,
		"    start_date: \"a\\nb\"\n":                          `VLLM_SYSTEM_START_DATE`,
		"    chat_template_kwargs: '{}'\n":                     `a section of names and values`,
		"    chat_template_kwargs: [1]\n":                      `a section of names and values`,
		"    chat_template_kwargs:\n      a: .inf\n":           `chat_template_kwargs.a`,
		"    chat_template_kwargs:\n      a: {b: [1, .nan]}\n": `chat_template_kwargs.a.b[1]`,
	} {
		if _, err := load(section); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "eppctl.yaml:") {
			t.Errorf("%s: %v", section, err)
		}
	}
	for _, key := range []string{"chat_template: /a", "content_format: auto", "time_zone: UTC", "start_date: 2026-01-31", "chat_template_kwargs: {a: 1}"} {
		text := "models:\n- name: m\n  tokenizer:\n    " + key + "\n"
		if _, err := LoadConfig(writeText(t, filepath.Join(t.TempDir(), "eppctl.yaml"), text)); err == nil || !strings.Contains(err.Error(), "without a source") {
			t.Errorf("%s: %v", key, err)
		}
	}
}
