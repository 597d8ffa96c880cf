package serve

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/feed"
	"github.com/eppctl/eppctl/internal/core/index"
	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/tokenizer"
	"github.com/eppctl/eppctl/internal/testdata"
)

// mediaCapture is what a vLLM with a model that sees published and answered.
func mediaCapture(t *testing.T) (*testdata.Capture, []string) {
	t.Helper()
	all := testdata.Captures(t)
	i := slices.IndexFunc(all, func(c *testdata.Capture) bool { return c.Name == "vllm-0.32.0/qwen2-vl" })
	if i < 0 {
		t.Fatal("no capture with images")
	}
	file, err := os.ReadFile(filepath.Join(all[i].Dir, "requests.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return all[i], strings.Split(strings.TrimSpace(string(file)), "\n")
}

// Requests with images, from their bodies on: the render endpoint names the images, and
// what the pod has of each prompt is what its engine reported.
func TestImagesFromBodyToMatch(t *testing.T) {
	c, lines := mediaCapture(t)
	replies := map[string]string{} // by body, as it is sent on
	renderer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		text := strings.Replace(string(body), `,"mm_payload":"none","return_mm_kwargs":false`, "", 1)
		reply, ok := replies[text]
		if !ok || r.URL.Path != chatRender {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, reply)
	}))
	t.Cleanup(renderer.Close)
	render := feed.NewRenderClient(nil, func(string) []feed.TokenizerEndpoint { return []feed.TokenizerEndpoint{{URL: renderer.URL}} })
	t.Cleanup(render.Close)
	r := newRig(t, rigOptions{provider: render, config: func(c *Config) { c.Models = Models{{Name: "tiny"}} }, pods: []pod.Spec{
		{Name: "a", Address: "10.0.0.1:8000", Model: "tiny", Engine: pod.EngineVLLM, Events: []string{"tcp://10.0.0.1:5557"}},
	}})
	m := r.pod("a").Members[0]
	r.fleet.Index.Register(m, index.Owner{Model: "tiny", Engine: pod.EngineVLLM, Blocks: c.Blocks})

	var dec event.Decoder
	var batch event.Batch
	applied, media := 0, 0
	for i := range c.Requests {
		q := &c.Requests[i]
		var line struct{ Body json.RawMessage }
		if err := json.Unmarshal([]byte(lines[i]), &line); err != nil {
			t.Fatal(err)
		}
		replies[string(line.Body)] = string(q.Render)
		for ; applied < q.Before; applied++ {
			if err := dec.Decode(c.Messages[applied].Payload, &batch); err != nil {
				t.Fatal(err)
			}
			for j := range batch.Events {
				r.fleet.Index.Apply(m, &batch.Events[j], int64(applied))
			}
		}
		x, card, no := r.picker.Explain(t.Context(), &ask{Head: head{Path: "/v1/chat/completions"}, Body: line.Body, ShowIDs: true})
		if no != nil {
			t.Fatalf("request %s: %+v", q.ID, no)
		}
		row := card.WinnerRow()
		if x.Prompt == nil || !slices.Equal(x.Prompt.IDs, q.Tokens) || x.Prompt.Cut != nil {
			t.Fatalf("request %s: %+v", q.ID, x.Prompt)
		}
		if got := q.Usable(int(row.Match.Depth*row.Match.Size), 32); got != q.Cached {
			t.Errorf("request %s: %d tokens, the engine had %d", q.ID, got, q.Cached)
		}
		media += len(x.Prompt.Media)
	}
	if media < 60 {
		t.Errorf("%d images in all", media)
	}
}

// uptoImage is a tokenizer that tells the ids before an image.
type uptoImage struct{}

func (uptoImage) Name() string { return "native" }
func (uptoImage) Tokenize(context.Context, tokenizer.Text) (tokenizer.Result, error) {
	return tokenizer.Result{IDs: ids(1, 40), Status: tokenizer.Exact, Cut: 40}, nil
}

// A prompt that is matched up to its image is told as such, of a question and of a pick,
// and without its ids: their number looks like that of the whole.
func TestExplainSaysWhereAnImageCuts(t *testing.T) {
	r := newRig(t, rigOptions{provider: uptoImage{}})
	const path, body = "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"http://x/y.png"}}]}]}`
	r.ask(reqHeaders(fullDuplex, false, path, requestIDHeader, "x"), reqBody([]byte(body), true))
	for _, answer := range []string{r.admin("POST", "/v1/explain?path="+path, body).Body.String(), r.admin("GET", "/v1/explain/x", "").Body.String()} {
		var x pick.Explanation
		if err := json.Unmarshal([]byte(answer), &x); err != nil || !x.Tokenizer.Cut || x.Tokens != 40 {
			t.Errorf("%v: %.500s", err, answer)
		}
	}
}

// What an image is called is a digest of it, and nobody is told.
func TestNamesOfImagesAreNotTold(t *testing.T) {
	const name = "7379b839ac901800f4562977b45e37ee"
	renderer := newEngineServer(t, map[string]string{chatRender: `{"token_ids":[1,2,3,4],"features":{"mm_hashes":{"image":["` + name + `"]},"mm_placeholders":{"image":[{"offset":1,"length":2}]}}}`})
	render := feed.NewRenderClient(nil, func(string) []feed.TokenizerEndpoint { return []feed.TokenizerEndpoint{{URL: renderer.url}} })
	t.Cleanup(render.Close)
	r := newRig(t, rigOptions{provider: render})
	const path, body = "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"http://x/y.png"}}]}]}`
	r.ask(reqHeaders(fullDuplex, false, path, requestIDHeader, "x"), reqBody([]byte(body), true))
	asked := r.admin("POST", "/v1/explain?tokens=1&path="+path, body)
	var x pick.Explanation
	if err := json.Unmarshal(asked.Body.Bytes(), &x); err != nil || x.Prompt == nil || !slices.Equal(x.Prompt.Media, []pick.ExplainedItem{{Offset: 1, Length: 2}}) {
		t.Fatalf("%s %v", asked.Body, err)
	}
	all := asked.Body.String() + r.admin("GET", "/v1/explain/x", "").Body.String() + r.admin("GET", "/v1/picks", "").Body.String() +
		r.admin("GET", "/v1/state", "").Body.String() + scrapePage(t, r.picker.met, true)
	if strings.Contains(all, name) || strings.Contains(all, "y.png") {
		t.Error("the image is named")
	}
}
