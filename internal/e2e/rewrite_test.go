package e2e

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/eppctl/eppctl/internal/serve"
	"github.com/eppctl/eppctl/internal/sim"
)

// names gives the fleet's model further names that no engine knows.
func (s *stack) names(aliases ...string) {
	s.t.Helper()
	text, err := os.ReadFile(s.Config)
	if err != nil {
		s.t.Fatal(err)
	}
	list, err := json.Marshal(aliases)
	if err != nil {
		s.t.Fatal(err)
	}
	edited := strings.Replace(string(text), "- name: \"sim\"\n", "- name: \"sim\"\n  aliases: "+string(list)+"\n", 1)
	if err := os.WriteFile(s.Config, []byte(edited), 0o644); err != nil {
		s.t.Fatal(err)
	}
	eventually(s.t, func() error {
		if b := s.admin(http.MethodGet, "/v1/names?kind=model", nil); !bytes.Contains(b, []byte(aliases[0])) {
			return fmt.Errorf("the picker knows %s", b)
		}
		return nil
	})
}

// arrived checks the bytes that the engine got.
func (s *stack) arrived(a answer, want string) {
	s.t.Helper()
	s.must(a)
	if got := a.header.Get(sim.BodyDigest); got != fmt.Sprintf("%x", sha256.Sum256([]byte(want))) {
		s.t.Errorf("the engine got another body than %.200s", want)
	}
	if got := a.header.Get(sim.BodyLength); got != fmt.Sprint(len(want)) {
		s.t.Errorf("content-length at the engine %s, want %d", got, len(want))
	}
}

// A client may use an alias, and a gateway ask for another model: the engine,
// which knows neither, gets the name it serves, and else the client's bytes.
func TestModelIsRewritten(t *testing.T) {
	for _, b := range serve.Bodies() {
		t.Run(fmt.Sprintf("EP-26/%s", b), func(t *testing.T) {
			s := start(t, setup{fleet: sim.FleetOptions{Engines: 2}, envoyConfig: []string{"--body", string(b)}})
			s.names("llama", "a-name-much-longer-than-the-engine's", "x")
			filler := strings.Repeat(`a ß 漢 \" \\ \"model\": \"llama\" `, 60_000)
			for _, c := range []struct{ name, before, after, rewrite string }{
				{"alias", `{"model":"llama","prompt":[1,2,3],"max_tokens":1}`, `{"model":"sim","prompt":[1,2,3],"max_tokens":1}`, ""},
				{"shorter", `{ "prompt":[1,2,3] ,"max_tokens":1,"model" : "x" }`, `{ "prompt":[1,2,3] ,"max_tokens":1,"model" : "sim" }`, ""},
				{"large", `{"prompt":[1,2],"user":"` + filler + `","model":"a-name-much-longer-than-the-engine's","max_tokens":1}`,
					`{"prompt":[1,2],"user":"` + filler + `","model":"sim","max_tokens":1}`, ""},
				{"text", `{"model":"llama","prompt":"what is it","max_tokens":1}`, `{"model":"sim","prompt":"what is it","max_tokens":1}`, ""},
				{"gateway", `{"model":"whatever","prompt":[1,2,3],"max_tokens":1}`, `{"model":"sim","prompt":[1,2,3],"max_tokens":1}`, "sim"},
				{"gateway names an alias", `{"model":"whatever","prompt":[1,2,3],"max_tokens":1}`, `{"model":"sim","prompt":[1,2,3],"max_tokens":1}`, "llama"},
				{"gateway, no model", `{"prompt":[1,2,3],"max_tokens":1}`, `{"model":"sim","prompt":[1,2,3],"max_tokens":1}`, "sim"},
				{"nothing to do", `{"model":"sim","prompt":[1,2,3],"max_tokens":1}`, `{"model":"sim","prompt":[1,2,3],"max_tokens":1}`, "sim"},
			} {
				t.Run(c.name, func(t *testing.T) {
					s := &stack{s.Stack, t, s.client, s.dir}
					headers := []string{sim.EchoDigest, "1"}
					if c.rewrite != "" {
						headers = append(headers, "x-llm-d-model-name-rewrite", c.rewrite)
					}
					s.arrived(s.call(t.Context(), "POST", "/v1/completions", []byte(c.before), headers...), c.after)
				})
			}
			s.quiet()
		})
	}
}

// Other body modes: a whole body in BUFFERED_PARTIAL is changed, and its length is
// right or not told; what STREAMED lets nobody change arrives as it was.
func TestModelInOtherModes(t *testing.T) {
	s := start(t, setup{fleet: sim.FleetOptions{Engines: 1}})
	s.names("llama")
	const alias, own = `{"model":"llama","prompt":[1,2,3],"max_tokens":1}`, `{"model":"sim","prompt":[1,2,3],"max_tokens":1}`
	mode := func(name string) *stack {
		return s.beside(func(text string) string {
			return strings.Replace(text, "request_body_mode: BUFFERED", "request_body_mode: "+name, 1)
		})
	}
	t.Run("EP-26/BUFFERED_PARTIAL", func(t *testing.T) {
		a := s.must(mode("BUFFERED_PARTIAL").call(t.Context(), "POST", "/v1/completions", []byte(alias), sim.EchoDigest, "1"))
		if got := a.header.Get(sim.BodyDigest); got != fmt.Sprintf("%x", sha256.Sum256([]byte(own))) {
			t.Error("the engine got another body")
		}
		if got := a.header.Get(sim.BodyLength); got != "-1" && got != fmt.Sprint(len(own)) {
			t.Errorf("content-length %s", got)
		}
	})
	t.Run("EP-26/STREAMED", func(t *testing.T) {
		through := mode("STREAMED")
		if a := through.call(t.Context(), "POST", "/v1/completions", []byte(alias)); a.status != http.StatusNotFound {
			t.Errorf("status %d, %v: %s", a.status, a.err, a.body)
		}
		s.must(through.call(t.Context(), "POST", "/v1/completions", []byte(own)))
	})
}

// Where the response passes through the picker too, the client reads the name it
// asked for, and the engines' own counts of cached tokens are on the metrics page.
func TestResponseNamesTheAlias(t *testing.T) {
	for _, b := range serve.Bodies() {
		t.Run(fmt.Sprintf("EP-26 EP-32/%s", b), func(t *testing.T) {
			s := start(t, setup{fleet: sim.FleetOptions{Engines: 1}, envoyConfig: []string{"--body", string(b), "--response-body", "full-duplex"}})
			s.names("a-name-much-longer-than-the-engine's")
			ids, _ := json.Marshal(prompt(1, 200))
			ask := func(stream bool) answer {
				body := fmt.Sprintf(`{"model":"a-name-much-longer-than-the-engine's","prompt":%s,"max_tokens":40,"stream":%v,"stream_options":{"include_usage":true}}`, ids, stream)
				return s.must(s.call(t.Context(), "POST", "/v1/completions", []byte(body)))
			}
			whole, events := ask(false), ask(true)
			for _, a := range []answer{whole, events} {
				if n := bytes.Count(a.body, []byte(`"model":"a-name-much-longer-than-the-engine's"`)); n == 0 || bytes.Contains(a.body, []byte(`"sim"`)) {
					t.Errorf("%d times the client's name in %.300s", n, a.body)
				}
			}
			if !json.Valid(whole.body) || !bytes.HasSuffix(events.body, []byte("data: [DONE]\n\n")) {
				t.Errorf("the response is not whole: %.300q … %.300q", whole.body, events.body)
			}
			eventually(t, func() error { // a client has its answer before the picker has counted it
				page := string(fetchPage(t, "http://"+s.Listen.Metrics+"/metrics"))
				for _, want := range []string{`what="prompt"} 400`, `what="output"} 80`, `what="queried"} 400`, `what="cached"} 192`} {
					if want = `eppctl_engine_tokens_total{pod="sim-0",` + want; !strings.Contains(page, want) {
						return fmt.Errorf("the metrics page lacks %s", want)
					}
				}
				return nil
			})
			s.quiet()
		})
	}
}

// A compressed prompt is read, and where its model is renamed the engine gets it
// as text, with the length of that and no content-encoding.
func TestCompressedBodies(t *testing.T) {
	for _, b := range serve.Bodies() {
		t.Run(string(b), func(t *testing.T) {
			s := start(t, setup{fleet: sim.FleetOptions{Engines: 2}, envoyConfig: []string{"--body", string(b)}})
			s.names("llama")
			body := func(model string) string {
				return `{"model":"` + model + `","prompt":[1,2,3],"user":"` + strings.Repeat("a ß 漢 ", 30_000) + `","max_tokens":1}`
			}
			for coding, pack := range map[string]func(io.Writer) (io.WriteCloser, error){
				"gzip": func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil },
				"zstd": func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) },
			} {
				var packed bytes.Buffer
				w, err := pack(&packed)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := io.WriteString(w, body("llama")); err != nil {
					t.Fatal(err)
				}
				if err := w.Close(); err != nil {
					t.Fatal(err)
				}
				for _, header := range []string{"content-encoding", "x-body-compressed"} {
					s.arrived(s.call(t.Context(), "POST", "/v1/completions", packed.Bytes(), sim.EchoDigest, "1", header, coding), body("sim"))
				}
			}
		})
	}
}
