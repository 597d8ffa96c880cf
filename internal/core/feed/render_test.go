package feed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/tokenizer"
)

func renderClient(t *testing.T, list ...TokenizerEndpoint) *RemoteTokenizer {
	t.Helper()
	c := NewRenderClient(nil, func(string) []TokenizerEndpoint { return list })
	t.Cleanup(c.Close)
	return c
}

// TestRender: TK-41, TK-42 and TK-44 over HTTP: the path of each shape, the body as
// it was with the base model in it, the ids by either name.
func TestRender(t *testing.T) {
	chat := tokenizer.Text{Model: "base", Shape: tokenizer.Chat, Body: []byte(`{"model":"sql","messages":[{"role":"user","content":"hi"}]}`)}
	text := tokenizer.Text{Model: "base", Shape: tokenizer.Completion, Body: []byte(`{"prompt":["a","b"],"model":"sql"}`)}
	for _, tc := range []struct {
		name   string
		engine pod.Engine
		text   tokenizer.Text
		path   string
		body   string
		reply  string
		want   [][]uint32
		cut    int
	}{
		{"vLLM chat", pod.EngineVLLM, chat, "/v1/chat/completions/render", `{"model":"base","messages":[{"role":"user","content":"hi"}]}`, `{"token_ids":[1,2]}`, [][]uint32{{1, 2}}, -1},
		{"vLLM completion", pod.EngineUnknown, text, "/v1/completions/render", `{"prompt":["a","b"],"model":"base"}`, `[{"token_ids":[1]},{"token_ids":[2,3]}]`, [][]uint32{{1}, {2, 3}}, -1},
		{"SGLang chat", pod.EngineSGLang, chat, "/v1/chat/completions/render", `{"model":"base","messages":[{"role":"user","content":"hi"}]}`, `{"input_ids":[3]}`, [][]uint32{{3}}, -1},
		{"media", pod.EngineVLLM, chat, "/v1/chat/completions/render", `{"model":"base","messages":[{"role":"user","content":"hi"}]}`, `{"token_ids":[1,2,3],"features":{"mm_placeholders":{"image":[{"offset":1,"length":1}]}}}`, [][]uint32{{1, 2, 3}}, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e, _ := tokenizeServer(t, func(w http.ResponseWriter, r *http.Request) {
				if body, err := io.ReadAll(r.Body); err != nil || r.URL.Path != tc.path || string(body) != tc.body {
					t.Errorf("%s %s %v", r.URL.Path, body, err)
				}
				fmt.Fprint(w, tc.reply)
			})
			e.Engine = tc.engine
			res, err := renderClient(t, e).Tokenize(t.Context(), tc.text)
			if got := append([][]uint32{res.IDs}, res.Further...); err != nil || !slices.EqualFunc(got, tc.want, slices.Equal) || res.Cut != tc.cut || res.Status != tokenizer.Exact {
				t.Errorf("%+v %v", res, err)
			}
		})
	}
}

func TestRenderNamesImages(t *testing.T) {
	const want = `{"model":"base","messages":[],"mm_payload":"none","return_mm_kwargs":false}`
	e, _ := tokenizeServer(t, func(w http.ResponseWriter, r *http.Request) {
		if body, err := io.ReadAll(r.Body); err != nil || string(body) != want {
			t.Errorf("%s %v", body, err)
		}
		fmt.Fprint(w, `{"token_ids":[1,2,3],"features":{"mm_hashes":{"image":["a"]},"mm_placeholders":{"image":[{"offset":1,"length":1}]}}}`)
	})
	res, err := renderClient(t, e).Tokenize(t.Context(), tokenizer.Text{Model: "base", Shape: tokenizer.Chat, Media: true, Body: []byte(`{"model":"sql","messages":[]}`)})
	if err != nil || res.Cut >= 0 || !slices.Equal(res.Items, []tokenizer.Item{{Name: "a", Offset: 1, Length: 1}}) {
		t.Errorf("%+v %v", res, err)
	}
}

// A renderer that needs long for an image goes on to be asked, about text and about other
// images: it may be the image that is slow.
func TestRenderSlowWithImagesAlone(t *testing.T) {
	e, asked := tokenizeServer(t, func(w http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); bytes.Contains(body, []byte("mm_payload")) {
			<-r.Context().Done()
			return
		}
		fmt.Fprint(w, `{"token_ids":[1]}`)
	})
	c := renderClient(t, e)
	text := tokenizer.Text{Model: "base", Shape: tokenizer.Chat, Body: []byte(`{"messages":[]}`)}
	image := text
	image.Media = true
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if _, err := c.Tokenize(ctx, image); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("an image: %v", err)
		}
		cancel()
		if _, err := c.Tokenize(t.Context(), text); err != nil {
			t.Errorf("text: %v", err)
		}
	}
	if n := asked.Load(); n != 6 {
		t.Errorf("asked %d times", n)
	}
}

// TestRenderNotOffered: TK-40. An endpoint that says so is not asked again.
func TestRenderNotOffered(t *testing.T) {
	for _, code := range []int{http.StatusNotFound, http.StatusForbidden} {
		e, asked := tokenizeServer(t, answers(code))
		c := renderClient(t, e)
		for range 5 {
			if _, err := c.Tokenize(t.Context(), secretText()); !errors.Is(err, ErrNotOffered) {
				t.Errorf("%d: %v", code, err)
			}
		}
		if n := asked.Load(); n != 1 {
			t.Errorf("%d: asked %d times", code, n)
		}
	}
}

// A request that an engine refuses is no fault of the endpoint: nobody else is
// asked about it, and the next request goes there as before.
func TestRefusedRequestIsNotTheEndpointsFault(t *testing.T) {
	for _, code := range []int{http.StatusBadRequest, http.StatusUnprocessableEntity} {
		first, asked := tokenizeServer(t, answers(code))
		c := renderClient(t, first, first)
		for range 3 {
			if _, err := c.Tokenize(t.Context(), secretText()); !errors.Is(err, ErrRefused) || errors.Is(err, ErrNotOffered) {
				t.Errorf("%d: %v", code, err)
			}
		}
		if n := asked.Load(); n != 3 || len(c.rests.of) != 0 {
			t.Errorf("%d: asked %d times, remembered %v", code, n, c.rests.of)
		}
	}
}

// What one client asks does not turn the endpoint off for the others. The statuses are
// those of a vLLM 0.32.0 about images that cannot be had.
func TestRequestThatFailsLeavesTheEndpoint(t *testing.T) {
	for _, code := range []int{http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusInternalServerError, http.StatusNotImplemented} {
		var bad atomic.Bool
		bad.Store(true)
		e, _ := tokenizeServer(t, func(w http.ResponseWriter, _ *http.Request) {
			if bad.Load() {
				http.Error(w, "no", code)
				return
			}
			_, _ = w.Write([]byte(`{"token_ids":[7]}`))
		})
		c := renderClient(t, e)
		if _, err := c.Tokenize(t.Context(), secretText()); err == nil {
			t.Fatal("no error")
		}
		bad.Store(false)
		if res, err := c.Tokenize(t.Context(), secretText()); err != nil || len(res.IDs) != 1 {
			t.Errorf("after a %d: %v", code, err)
		}
	}
}

// TestRenderHangs: TK-43. The caller's deadline ends the call.
func TestRenderHangs(t *testing.T) {
	release := make(chan struct{})
	stuck, _ := tokenizeServer(t, func(http.ResponseWriter, *http.Request) { <-release })
	t.Cleanup(func() { close(release) })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := renderClient(t, stuck, stuck).Tokenize(ctx, secretText()); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}
