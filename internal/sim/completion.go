package sim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/eppctl/eppctl/internal/core/pod"
)

func (e *Engine) serveCompletion(w http.ResponseWriter, r *http.Request) {
	q, ids, ok := e.read(w, r)
	if !ok {
		return
	}
	limit := q.outputLimit()
	if room := min(e.opt.MaxModelLen, e.room); len(ids)+limit > room {
		refuse(w, http.StatusBadRequest, fmt.Sprintf(
			"This model's maximum context length is %d tokens. However, you requested %d output tokens and your prompt contains %d.",
			room, limit, len(ids)))
		return
	}
	ns := namespace{salt: q.CacheSalt}
	if slices.Contains(e.opt.Adapters, q.Model) {
		ns.adapter = q.Model
	}
	x := &exchange{id: r.Header.Get("x-request-id"), start: time.Now(), seq: newSequence(ns, ids, limit)}
	x.seq.session = r.Header.Get("x-session-id")
	if !e.submit(x) {
		refuse(w, http.StatusServiceUnavailable, "The queue is full.")
		return
	}
	defer e.forget(x)
	a := answer{e: e, x: x, w: w, req: q, chat: strings.HasSuffix(r.URL.Path, "/chat/completions"), prompt: ids}
	if q.Stream {
		a.stream(r)
	} else {
		a.whole(r)
	}
}

func (e *Engine) submit(x *exchange) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.opt.MaxQueued > 0 && len(e.sched.waiting) >= e.opt.MaxQueued {
		e.refused++
		return false
	}
	e.live[x] = struct{}{}
	e.sched.waiting = append(e.sched.waiting, x.seq)
	e.nudge()
	return true
}

// forget ends an exchange by whatever way: a client that left aborts its
// sequence, a finished one is not touched by that.
func (e *Engine) forget(x *exchange) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.live, x)
	x.seq.aborted = true
	e.e2e.observe(time.Since(x.start))
	e.nudge()
}

// answer writes one response.
type answer struct {
	e      *Engine
	x      *exchange
	w      http.ResponseWriter
	req    *request
	chat   bool
	prompt []uint32
	text   strings.Builder
	tokens int
	cached int
}

// next returns the next generated piece; false at the end. An error means that
// nobody waits for the answer any more.
func (a *answer) next(r *http.Request) (string, bool, error) {
	select {
	case p, ok := <-a.x.seq.out:
		if !ok {
			return "", false, nil
		}
		if a.tokens == 0 {
			a.e.mu.Lock()
			a.e.ttft.observe(time.Since(a.x.start))
			a.e.mu.Unlock()
		}
		a.tokens++
		a.cached = p.cached
		return p.text, true, nil
	case <-r.Context().Done():
		return "", false, r.Context().Err()
	case <-a.e.ctx.Done():
		// A dying process does not finish its responses.
		panic(http.ErrAbortHandler)
	}
}

func (a *answer) whole(r *http.Request) {
	for {
		text, ok, err := a.next(r)
		if err != nil {
			return
		}
		if !ok {
			break
		}
		a.text.WriteString(text)
	}
	a.begin("application/json")
	body := a.object(a.text.String(), "length", false)
	body["usage"] = a.usage()
	json.NewEncoder(a.w).Encode(body)
}

// stream sends server-sent events. vLLM sends the response headers when it has
// accepted the request; SGLang waits for the first token, so that an early
// error still has a status.
func (a *answer) stream(r *http.Request) {
	flush := a.w.(http.Flusher).Flush
	if a.e.opt.Kind == pod.EngineVLLM {
		a.begin("text/event-stream; charset=utf-8")
		flush()
	}
	for {
		text, ok, err := a.next(r)
		if err != nil {
			return
		}
		if !ok {
			break
		}
		a.begin("text/event-stream; charset=utf-8")
		reason := ""
		if a.tokens == a.x.seq.limit {
			reason = "length"
		}
		a.event(a.object(text, reason, true))
		flush()
	}
	if a.req.StreamOptions.IncludeUsage {
		body := a.object("", "", true)
		body["choices"] = []any{}
		body["usage"] = a.usage()
		a.event(body)
	}
	fmt.Fprint(a.w, "data: [DONE]\n\n")
}

func (a *answer) begin(contentType string) {
	a.e.mu.Lock()
	done, dead := a.x.begun, a.e.dead
	a.x.begun = !dead
	a.e.mu.Unlock()
	if dead {
		panic(http.ErrAbortHandler)
	}
	if !done {
		a.w.Header().Set("Content-Type", contentType)
		a.w.WriteHeader(http.StatusOK)
	}
}

func (a *answer) event(body map[string]any) {
	b, err := json.Marshal(body)
	if err != nil {
		panic(err) // maps of plain values always marshal
	}
	fmt.Fprintf(a.w, "data: %s\n\n", b)
}

// object is one completion or chat object, whole or a chunk of a stream.
func (a *answer) object(text, reason string, chunk bool) map[string]any {
	var finish any
	if reason != "" {
		finish = reason
	}
	choice := map[string]any{"index": 0, "logprobs": nil, "finish_reason": finish}
	kind, id := "text_completion", "cmpl-"
	switch {
	case a.chat && chunk:
		kind, id = "chat.completion.chunk", "chatcmpl-"
		choice["delta"] = map[string]string{"role": "assistant", "content": text}
	case a.chat:
		kind, id = "chat.completion", "chatcmpl-"
		choice["message"] = map[string]string{"role": "assistant", "content": text}
	default:
		choice["text"] = text
	}
	body := map[string]any{"id": id + a.x.id, "object": kind, "created": a.x.start.Unix(),
		"model": a.req.Model, "choices": []any{choice}}
	// vLLM tells them at the top of a chat and in each choice of a completion, in the
	// first chunk of a stream; SGLang 0.5.23 does not know the field.
	if a.req.ReturnTokenIDs && a.e.opt.Kind == pod.EngineVLLM && (!chunk || a.tokens == 1) {
		if a.chat {
			body["prompt_token_ids"] = a.prompt
		} else {
			choice["prompt_token_ids"] = a.prompt
		}
	}
	return body
}

// usage has the form of vLLM with --enable-prompt-tokens-details.
func (a *answer) usage() map[string]any {
	prompt := len(a.prompt)
	return map[string]any{"prompt_tokens": prompt, "completion_tokens": a.tokens, "total_tokens": prompt + a.tokens,
		"prompt_tokens_details": map[string]int{"cached_tokens": max(a.cached, 0)}}
}
