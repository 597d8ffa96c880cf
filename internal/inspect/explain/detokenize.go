package explain

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	maxDetokenized = 64 << 10 // bytes of the reply about some seven ids
	maxText        = 256      // of its text that are shown; an entry is seldom longer than 16
)

// noRedirects sends the ids to the engine that was named, and to none that it names.
var noRedirects = http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// detokenize is the engine's text of ids; nil when it does not say.
func detokenize(ctx context.Context, patience time.Duration, engine, model string, ids []uint32) *string {
	body, err := json.Marshal(map[string]any{"model": model, "tokens": ids})
	if err != nil || len(ids) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(engine, "/")+"/detokenize", bytes.NewReader(body))
	if err != nil {
		return nil
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := noRedirects.Do(req)
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil
	}
	return readDetokenized(resp.Body)
}

// readDetokenized reads a reply to POST /detokenize. A long text is cut.
func readDetokenized(r io.Reader) *string {
	b, err := io.ReadAll(io.LimitReader(r, maxDetokenized+1))
	if err != nil || len(b) > maxDetokenized {
		return nil
	}
	var reply struct {
		Prompt *string `json:"prompt"` // vLLM
		Text   *string `json:"text"`   // SGLang
	}
	if json.Unmarshal(b, &reply) != nil {
		return nil
	}
	text := reply.Prompt
	if text == nil {
		text = reply.Text
	}
	if text != nil && len(*text) > maxText {
		end := maxText
		for end > 0 && !utf8.RuneStart((*text)[end]) {
			end--
		}
		short := (*text)[:end] + "…"
		text = &short
	}
	return text
}
