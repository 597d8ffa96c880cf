package chat

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/chat/jinja2"
	"github.com/eppctl/eppctl/internal/testdata"
)

// noon of the day that testdata/encoders/harmony.json.gz was made with.
var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// the releases whose answers it has.
var newest, oldest = Release{0, 32}, Release{0, 23}

func harmonyOf(t testing.TB, r Release) *Renderer {
	t.Helper()
	x, err := New(Files{}, Options{Model: Model{Type: "gpt_oss"}, Release: func() Release { return r }})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// harmonyIDs are the special tokens that a prompt of the format is made of.
var harmonyIDs = map[string]int{"<|start|>": 200006, "<|end|>": 200007, "<|message|>": 200008, "<|channel|>": 200005, "<|call|>": 200012}

var harmonyWords = regexp.MustCompile(`<\|[a-z][a-z0-9_]*\|>`)

// harmonyParts are a prompt's special tokens, by their numbers, and the text between them.
func harmonyParts(t testing.TB, p *Prompt) (parts []string) {
	t.Helper()
	add := func(text string) {
		if n := len(parts); n > 0 && !strings.HasPrefix(parts[n-1], "#") {
			parts[n-1] += text
		} else if text != "" {
			parts = append(parts, "="+text)
		}
	}
	from := 0
	for _, to := range append(slices.Clone(p.Apart), len(p.Text)) {
		if to < from {
			t.Fatalf("apart at %d behind %d", to, from)
		}
		text := p.Text[from:to]
		from = to
		for {
			at := harmonyWords.FindStringIndex(text)
			if at == nil {
				break
			}
			add(text[:at[0]])
			parts = append(parts, "#"+strconv.Itoa(harmonyIDs[text[at[0]:at[1]]]))
			text = text[at[1]:]
		}
		add(text)
	}
	return parts
}

// TestHarmony holds each request of testdata/encoders/harmony.json.gz against what vLLM
// 0.32.0 and 0.23.0 make of it: the same special tokens and texts, or none.
func TestHarmony(t *testing.T) {
	v, err := jinja2.ParseJSON(testdata.Gunzip(t, filepath.Join(testdata.Dirs(t, "encoders")[0], "harmony.json.gz")))
	if err != nil {
		t.Fatal(err)
	}
	for _, release := range []Release{newest, oldest} {
		r := harmonyOf(t, release)
		same, refused, left, wrong := 0, 0, map[string]int{}, 0
		for i, c := range v.AsList().Items {
			want := member(c, "new")
			if old, given := jinja2.Get(c, "old"); given && release == oldest {
				want = old
			}
			body, err := jinja2.DumpJSON(member(c, "body"), false)
			if err != nil {
				t.Fatal(err)
			}
			p, err := r.Render(t.Context(), []byte(body), noon)
			_, fails := jinja2.Get(want, "error")
			unknown := new(Unrenderable)
			switch {
			case fails && err != nil, fails && i >= harmonyOddFrom: // such a request has no prompt
				refused++
			case err == nil && !fails && slices.Equal(harmonyParts(t, p), harmonyWant(want)):
				same++
			case errors.As(err, &unknown):
				left[unknown.Reason]++
			default:
				if wrong++; wrong < 4 {
					t.Errorf("request %d: %v\n%.800s\n%+v\nwant\n%q", i, err, body, p, harmonyWant(want))
				}
			}
		}
		t.Logf("0.%d: %d prompts are the same, %d requests have none, left to others: %v; %d differ", release.Minor, same, refused, left, wrong)
		if same < 180 || refused < 40 || len(left) < 4 {
			t.Error("the requests are too one-sided")
		}
	}
}

// harmonyOddFrom is where requests begin with members of odd shapes, of which vLLM refuses
// more than is looked at here.
const harmonyOddFrom = 240

func harmonyWant(want jinja2.Value) (parts []string) {
	list := member(want, "parts")
	if !list.IsList() {
		return nil
	}
	for _, x := range list.AsList().Items {
		if jinja2.IsText(x) {
			parts = append(parts, "="+x.AsString())
		} else {
			parts = append(parts, "#"+strconv.FormatInt(x.AsInt(), 10))
		}
	}
	return parts
}

// TestHarmonyLeft: what is left to others says why, and what bears on the prompt shows.
func TestHarmonyLeft(t *testing.T) {
	const user = `{"role":"user","content":"q"}`
	const answer = `{"messages":[` + user + `,{"role":"tool","tool_call_id":"1","content":"42"}]}`
	ask := func(members string) string { return `{"messages":[` + user + `]` + members + `}` }
	tool := func(parameters string) string {
		return ask(`,"tools":[{"type":"function","function":{"name":"f","description":"","parameters":` + parameters + `}}]`)
	}
	for name, c := range map[string]struct {
		release Release
		body    string
		why     string
	}{
		"a release before":         {Release{0, 22}, ask(""), "release"},
		"a release behind":         {Release{0, 34}, ask(""), "release"},
		"another major":            {Release{1, 0}, ask(""), "release"},
		"an answer, nothing known": {Release{}, answer, "0.31.0"},
		"an effort":                {newest, ask(`,"reasoning_effort":"minimal"`), "reasoning_effort"},
		"an image":                 {newest, `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:,"}}]}]}`, "no text"},
		"another role":             {newest, `{"messages":[{"role":"function","name":"f","content":"q"}]}`, "role"},
		"a message of the format":  {newest, `{"messages":[{"role":"user","content":"q","channel":"final"}]}`, "Harmony format itself"},
		"a custom call":            {newest, `{"messages":[{"role":"assistant","tool_calls":[{"id":"1","type":"custom","custom":{"name":"f","input":"x"}}]}]}`, "tool call"},
		"parts beside a stranger":  {newest, `{"messages":[{"role":"developer","content":[{"type":"text","text":"q"}],"cache_control":{}}]}`, "in parts"},
		"a name with a blank":      {newest, `{"messages":[{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"a b","arguments":""}}]}]}`, "name"},
		"a name like a token":      {newest, `{"messages":[{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"<|end|>","arguments":""}}]}]}`, "name"},
		"many digits":              {newest, tool(`{"type":"object","properties":{"a":{"default":0.1234567890123456}}}`), "digits"},
		"an exponent":              {newest, tool(`{"type":"object","properties":{"a":{"default":[1e16]}}}`), "digits"},
		"beyond 64 bits":           {newest, tool(`{"type":"object","properties":{"a":{"default":18446744073709551616}}}`), "64 bits"},
		"much in the depth":        {newest, tool(strings.Repeat(`{"type":"object","properties":{"a":`, 80) + `{"type":"object","properties":{` + manyProperties(40_000) + `}}` + strings.Repeat(`}}`, 80)), "too long"},
		"nested deep":              {newest, tool(strings.Repeat(`{"type":"array","items":`, 100) + `{}` + strings.Repeat(`}`, 100)), "deep"},
	} {
		_, err := harmonyOf(t, c.release).Render(t.Context(), []byte(c.body), noon)
		if u := new(Unrenderable); !errors.As(err, &u) || !strings.Contains(u.Reason, c.why) {
			t.Errorf("%s: %v", name, err)
		}
	}
	r := harmonyOf(t, newest)
	if _, err := r.Render(t.Context(), []byte(ask("")), time.Time{}); err == nil || !strings.Contains(err.Error(), "time zone") {
		t.Errorf("without a clock: %v", err)
	}
	for _, api := range []API{Messages, Responses} {
		if u := new(Unrenderable); !unrenders(r, api, `{"max_tokens":1,"input":"q","messages":[`+user+`]}`, &u) {
			t.Errorf("form %d is rendered", api)
		}
	}
	if _, err := New(Files{}, Options{Model: Model{Type: "gpt_oss"}, Engine: SGLang}); err == nil {
		t.Error("SGLang's chats are other ones")
	}
	if _, err := harmonyOf(t, Release{}).Render(t.Context(), []byte(ask("")), noon); err != nil {
		t.Errorf("a chat that all releases encode alike: %v", err)
	}
}

// manyProperties are as many properties of an object.
func manyProperties(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(`"p%d":{}`, i)
	}
	return strings.Join(list, ",")
}

// TestHarmonyDate: the date is the engine's, and doubtful only where two clocks may not
// agree on it.
func TestHarmonyDate(t *testing.T) {
	r := harmonyOf(t, newest)
	body := []byte(`{"messages":[{"role":"user","content":"q"}]}`)
	east := time.FixedZone("east", 9*3600)
	for _, c := range []struct {
		now      time.Time
		want     string
		doubtful bool
	}{
		{noon, "2026-12-01", false},
		{noon.Add(12*time.Hour - time.Minute), "2026-12-01", true},
		{noon.Add(12*time.Hour + time.Minute), "2026-12-02", true},
		{noon.Add(12*time.Hour + 3*time.Minute), "2026-12-02", false},
		{noon.Add(9 * time.Hour).In(east), "2026-12-02", false},
	} {
		p, err := r.Render(context.Background(), body, c.now)
		if err != nil || !strings.Contains(p.Text, "\nCurrent date: "+c.want+"\n") || slices.Contains(p.Warnings, DateInPrompt) != c.doubtful {
			t.Errorf("%v: %+v, %v", c.now, p, err)
		}
	}
}

// TestHarmonyStartDate: a date that the engine was told needs no clock, and is never
// doubtful.
func TestHarmonyStartDate(t *testing.T) {
	r, err := New(Files{}, Options{Model: Model{Type: "gpt_oss"}, StartDate: "2025-06-28"})
	if err != nil {
		t.Fatal(err)
	}
	for _, now := range []time.Time{{}, noon, noon.Add(12 * time.Hour)} {
		p, err := r.Render(t.Context(), []byte(`{"messages":[{"role":"user","content":"q"}]}`), now)
		if err != nil || !strings.Contains(p.Text, "\nCurrent date: 2025-06-28\n") || len(p.Warnings) > 0 {
			t.Errorf("%v: %+v, %v", now, p, err)
		}
	}
}

// TestRelease: releases as engines tell them.
func TestRelease(t *testing.T) {
	for s, want := range map[string]Release{
		"0.32.0": {0, 32}, "0.32.1+cpu": {0, 32}, "v0.31.2": {0, 31}, "0.31.1.dev12+gabc": {0, 31}, "0.31.1rc1": {0, 31}, "1.0": {1, 0}, "0.32.0+cpu": {0, 32},
		"0.31.0rc1": {}, "0.31.0.dev3": {}, "0.31rc1": {}, "": {}, "main": {}, "0": {}, "0.99999.1": {}, "-1.2.3": {},
	} {
		if got := ParseRelease(s); got != want {
			t.Errorf("%q: %v, want %v", s, got, want)
		}
	}
}

// FuzzHarmony: no body ends in a panic, and nothing that a request says becomes a special
// token: each message begins, has a header and ends, and the last one is begun.
func FuzzHarmony(f *testing.F) {
	for _, s := range []string{
		`{"messages":[{"role":"system","content":"<|end|>"},{"role":"user","content":[{"type":"text","text":"a<|en"},{"type":"text","text":"d|>"}]}]}`,
		`{"messages":[{"role":"assistant","content":"<|_a|>","reasoning":"<|<|call|>","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"<|call|>"}}]},{"role":"tool","tool_call_id":"c","content":"x"}],"reasoning_effort":"low"}`,
		`{"messages":[{"role":"user","content":"q"}],"tools":[{"type":"function","function":{"name":"f<|end|>","description":"a\r\nb","parameters":{"type":"object","properties":{"a":{"oneOf":[{"type":"string","enum":["<|end|>"]},{"type":["integer","null"],"nullable":true,"default":{"k":[1.5,"\u0001"]}}],"default":"x"}}}}}]}`,
	} {
		f.Add([]byte(s))
	}
	grammar := regexp.MustCompile(`^(?:#200006(?:#200005)?#200008#2000(?:07|12))+#200006$`)
	all := []*Renderer{harmonyOf(f, newest), harmonyOf(f, oldest), harmonyOf(f, Release{})}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, r := range all {
			p, err := r.Render(t.Context(), body, noon)
			if err != nil {
				refused, unknown := new(Rejected), new(Unrenderable)
				if !errors.As(err, &refused) && !errors.As(err, &unknown) {
					t.Fatal(err)
				}
				continue
			}
			tokens := slices.DeleteFunc(harmonyParts(t, p), func(s string) bool { return s[0] == '=' })
			if s := strings.Join(tokens, ""); !grammar.MatchString(s) {
				t.Fatalf("%s of %q", s, p.Text)
			}
		}
	})
}
