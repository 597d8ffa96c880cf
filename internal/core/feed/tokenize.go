package feed

import (
	"net/http"

	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/tokenizer"
)

// NewTokenizeClient returns the provider "tokenize": POST /tokenize of the engines
// themselves. See newRemoteTokenizer.
func NewTokenizeClient(client *http.Client, candidates func(model string) []TokenizerEndpoint) *RemoteTokenizer {
	return newRemoteTokenizer(method{
		name: "tokenize",
		asks: func(e pod.Engine) bool { return e != pod.EngineTriton && e != pod.EngineTRTLLM }, // which have none
		write: func(d tokenizer.Dialect, t tokenizer.Text) (string, []byte, tokenizer.Status, error) {
			body, status, err := tokenizeBody(d, t)
			return "/tokenize", body, status, err
		},
		read: func(reply []byte, limit int) ([]uint32, int, error) {
			ids, err := tokenizer.ParseResponse(reply, limit)
			return ids, -1, err
		},
	}, client, candidates)
}

// tokenizeBody is what an engine's /tokenize is sent. It knows texts and chats, so
// that a request of another form is turned into a chat; and it does not tell where
// among its ids an image stands.
func tokenizeBody(d tokenizer.Dialect, t tokenizer.Text) ([]byte, tokenizer.Status, error) {
	if t.Media {
		return nil, "", tokenizer.ErrMedia
	}
	t, claim, err := asChat(d, t)
	if err != nil {
		return nil, "", err
	}
	body, status, err := tokenizer.WriteRequest(d, t)
	if claim == tokenizer.Unverified {
		status = claim
	}
	return body, status, err
}
