package feed

import (
	"net/http"

	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/tokenizer"
)

// NewTokenizeClient returns the provider "tokenize": POST /tokenize of the engines
// themselves, once for each prompt of a request. See newRemoteTokenizer.
func NewTokenizeClient(client *http.Client, candidates func(model string) []TokenizerEndpoint) *RemoteTokenizer {
	return newRemoteTokenizer(method{
		name: "tokenize",
		asks: func(e pod.Engine) bool { return e != pod.EngineTriton && e != pod.EngineTRTLLM }, // which have none
		write: func(d tokenizer.Dialect, t tokenizer.Text) (string, [][]byte, tokenizer.Status, error) {
			bodies, status, err := tokenizeBodies(d, t)
			return "/tokenize", bodies, status, err
		},
		read: func(reply []byte, limit int) (tokenizer.Result, error) {
			ids, err := tokenizer.ParseResponse(reply, limit)
			return tokenizer.Result{IDs: ids, Cut: -1}, err
		},
	}, client, candidates)
}

// tokenizeBodies are what an engine's /tokenize is sent, one after another. It knows texts and chats, so
// that a request of another form is turned into a chat; and it does not tell where
// among its ids an image stands.
func tokenizeBodies(d tokenizer.Dialect, t tokenizer.Text) ([][]byte, tokenizer.Status, error) {
	if t.Media {
		return nil, "", tokenizer.ErrMedia
	}
	t, claim, err := asChat(d, t)
	if err != nil {
		return nil, "", err
	}
	bodies, status, err := tokenizer.WriteRequests(d, t)
	if claim == tokenizer.Unverified {
		status = claim
	}
	return bodies, status, err
}
