package feed

import (
	"net/http"

	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/tokenizer"
)

// NewRenderClient returns the provider "render": the interfaces at which an engine
// tells what it makes of a whole request, its own preparation of chats included.
// Where there is none for /v1/messages or /v1/responses, that of chats is asked about
// the chat that the engine makes of the request. Plain vLLM offers them by version and flag (0.32.0 answers 403 without), SGLang
// on its separate renderer alone. See newRemoteTokenizer.
func NewRenderClient(client *http.Client, candidates func(model string) []TokenizerEndpoint) *RemoteTokenizer {
	return newRemoteTokenizer(method{
		name: "render", chats: true,
		asks: func(e pod.Engine) bool { return e != pod.EngineTriton && e != pod.EngineTRTLLM },
		write: func(d tokenizer.Dialect, t tokenizer.Text) (string, [][]byte, tokenizer.Status, error) {
			path, body, err := tokenizer.WriteRender(d, t)
			status := tokenizer.Exact
			if t.Shape == tokenizer.Messages && thinks(t.Body) {
				status = tokenizer.Unverified
			}
			return path, [][]byte{body}, status, err
		},
		read: func(reply []byte, limit int) (tokenizer.Result, error) {
			prompts, err := tokenizer.ParseRender(reply, limit)
			if err != nil {
				return tokenizer.Result{}, err
			}
			res := tokenizer.Result{IDs: prompts[0].IDs, Items: prompts[0].Items, Cut: prompts[0].Cut}
			for _, p := range prompts[1:] {
				if p.Cut >= 0 || len(p.Items) > 0 { // only chats have media, and a chat is one prompt
					return tokenizer.Result{}, tokenizer.ErrMedia
				}
				res.Further = append(res.Further, p.IDs)
			}
			return res, nil
		},
	}, client, candidates)
}

// thinks reports whether a request sets thinking. Where that is off, vLLM's server
// picks an effort by its template, and its render endpoint does not (0.32.0).
func thinks(body []byte) bool {
	from, _, given := tokenizer.FindMember(body, "thinking")
	return given && body[from] != 'n'
}
