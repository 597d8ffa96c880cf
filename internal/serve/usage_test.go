package serve

import (
	"strings"
	"testing"
)

func TestUsage(t *testing.T) {
	const details = `"usage":{"prompt_tokens":7,"total_tokens":10,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":4}}`
	for name, c := range map[string]struct {
		body string
		want usage
		told bool
	}{
		"JSON":             {`{"choices":[{"text":"hi"}],` + details + `,"kv_transfer_params":null}`, usage{7, 3, 4}, true},
		"last event":       {"data: {\"usage\":null}\n\ndata: {" + details + "}\n\ndata: [DONE]\n\n", usage{7, 3, 4}, true},
		"every event":      {"data: {\"usage\":{\"prompt_tokens\":7}}\n\ndata: {" + details + "}\n\n", usage{7, 3, 4}, true},
		"null at last":     {"data: {" + details + "}\n\ndata: {\"usage\":null}\n\n", usage{7, 3, 4}, true},
		"responses API":    {`{"usage":{"input_tokens":7,"input_tokens_details":{"cached_tokens":4},"output_tokens":3}}`, usage{7, 3, 4}, true},
		"hits not told":    {`{"usage":{"prompt_tokens":7,"completion_tokens":3,"prompt_tokens_details":null}}`, usage{7, 3, -1}, true},
		"missing":          {`{"choices":[{"text":"hi"}]}`, usage{}, false},
		"null":             {`{"usage":null}`, usage{}, false},
		"in the text":      {`{"text":"\"usage\":{\"prompt_tokens\":9}"}`, usage{}, false},
		"broken":           {`{"usage":{"prompt_tokens":7`, usage{}, false},
		"no JSON":          {"\x1f\x8b\x08usage\"usage\"", usage{}, false},
		"floats and signs": {`{"usage":{"prompt_tokens":-7,"completion_tokens":3.5}}`, usage{0, 0, -1}, true},
		"beyond an int":    {`{"usage":{"prompt_tokens":99999999999999999999,"completion_tokens":3}}`, usage{0, 3, -1}, true},
		"behind much text": {`{"text":"` + strings.Repeat("x", 100_000) + `",` + details + "}", usage{7, 3, 4}, true},
	} {
		t.Run("EP-32/"+name, func(t *testing.T) {
			for _, size := range []int{len(c.body) + 1, 1, 7, 4096} {
				var u usageReader
				for rest := c.body; rest != ""; {
					n := min(size, len(rest))
					u.add([]byte(rest[:n]))
					rest = rest[n:]
					if len(u.tail) > 2*usageTail {
						t.Fatalf("%d bytes are kept", len(u.tail))
					}
				}
				if got, told := u.result(); told != c.told || told && got != c.want {
					t.Errorf("pieces of %d: %+v %v, want %+v %v", size, got, told, c.want, c.told)
				}
			}
		})
	}
}

func FuzzUsage(f *testing.F) {
	f.Add([]byte(`{"usage":{"prompt_tokens":7,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":4}}}`), 5)
	f.Add([]byte("data: {\"usage\":{\"input_tokens\":1,\"input_tokens_details\":{}}}\n\ndata: [DONE]\n\n"), 1)
	f.Add([]byte(`"usage":"usage":{"prompt_tokens":1e9}`), 3)
	f.Fuzz(func(t *testing.T, body []byte, size int) {
		var whole, cut usageReader
		whole.add(body)
		for rest := body; len(rest) > 0; {
			n := min(max(1, size), len(rest))
			cut.add(rest[:n])
			rest = rest[n:]
		}
		a, oka := whole.result()
		if a.Prompt < 0 || a.Output < 0 || a.Cached < -1 {
			t.Fatalf("%+v", a)
		}
		if b, okb := cut.result(); len(body) <= usageTail && (a != b || oka != okb) {
			t.Fatalf("whole %+v %v, cut %+v %v", a, oka, b, okb)
		}
	})
}

func TestUsageIsCounted(t *testing.T) {
	r := newRig(t, rigOptions{})
	count := func() string {
		var out []string
		for l := range strings.Lines(scrapePage(t, r.picker.met, false)) {
			if name, rest, _ := strings.Cut(strings.TrimSpace(l), "what="); strings.HasPrefix(name, "eppctl_engine_tokens_total") {
				out = append(out, strings.NewReplacer(`"`, "", "}", "").Replace(rest))
			}
		}
		return strings.Join(out, ", ")
	}
	both := protocol(modeFullDuplex, modeFullDuplex)
	body := func(cached string) []byte {
		return []byte(`{"usage":{"prompt_tokens":7,"completion_tokens":3` + cached + `}}`)
	}
	ask := func(mode bodyMode, headers []string, b []byte) {
		c, _ := r.routed(protocol(modeFullDuplex, mode), 1)
		c.send(respHeaders(false, append([]string{":status", "200"}, headers...)...), respBody(b, true))
		c.rest()
	}
	t.Run("EP-32/not counted", func(t *testing.T) {
		ask(modeFullDuplex, []string{"content-encoding", "gzip"}, body(""))
		ask(modeFullDuplex, []string{":status", "500"}, body(""))
		ask(modeFullDuplex, nil, []byte(`{}`))
		c, _ := r.routed(both, 1) // cut before its end
		c.send(respHeaders(false, ":status", "200"), respBody(body(""), false))
		c.rest()
		if got := count(); got != "" {
			t.Errorf("counted %s", got)
		}
	})
	t.Run("EP-32/RS-15 counted", func(t *testing.T) {
		r.fleet.Pods.Remove(r.pod("b").ID)
		r.fleet.Pods.Remove(r.pod("c").ID)
		for _, mode := range []bodyMode{modeFullDuplex, modeStreamed, modeBuffered} {
			ask(mode, nil, body(`,"prompt_tokens_details":{"cached_tokens":4}`))
		}
		ask(modeFullDuplex, nil, body(""))
		if got, want := count(), "cached 12, output 12, prompt 28, queried 21"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
	t.Run("EP-32/trailers", func(t *testing.T) {
		c, _ := r.routed(both, 1)
		c.send(respHeaders(false, ":status", "200"), respBody(body(""), false), respTrailers())
		c.rest()
		if got, want := count(), "cached 12, output 15, prompt 35, queried 21"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
	r.picker.met.forget("a")
	if got := count(); got != "" {
		t.Errorf("a pod that is gone still counts %s", got)
	}
}
