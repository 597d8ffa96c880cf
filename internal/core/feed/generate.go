package feed

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/tokenizer"
)

// NewGenerateClient asks engines to generate one token and to tell what they made of
// the prompt. That costs an engine a step, so it is for those who compare, and for no
// request of a client. Of an engine that ignores return_token_ids it says
// ErrNotOffered. See newRemoteTokenizer.
func NewGenerateClient(client *http.Client, candidates func(model string) []TokenizerEndpoint) *RemoteTokenizer {
	return newRemoteTokenizer(method{
		name: "generate",
		// SGLang 0.5.23, Triton and TensorRT-LLM have no such field.
		asks: func(e pod.Engine) bool { return e == pod.EngineVLLM || e == pod.EngineUnknown },
		write: func(_ tokenizer.Dialect, t tokenizer.Text) (string, [][]byte, tokenizer.Status, error) {
			path, body, err := tokenizer.WriteGenerate(t)
			return path, [][]byte{body}, tokenizer.Exact, err
		},
		read: func(reply []byte, limit int) (tokenizer.Result, error) {
			ids, err := tokenizer.ParseGenerated(reply, limit)
			if errors.Is(err, tokenizer.ErrNoIDs) {
				err = fmt.Errorf("%w: it ignores return_token_ids", ErrNotOffered)
			}
			return tokenizer.Result{IDs: ids, Cut: -1}, err
		},
	}, client, candidates)
}
