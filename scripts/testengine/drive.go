package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/eppctl/eppctl/internal/sim"
)

var client = &http.Client{Timeout: 2 * time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}

// body is that of a request; what is the same in all of them is added.
type body map[string]any

// row is one request: what serve predicted of it when it picked, and what the
// engine reported.
type row struct {
	Scenario  string `json:"scenario"`
	Name      string `json:"name"`
	Prompt    int    `json:"prompt_tokens"`
	Predicted int    `json:"predicted"`
	Reported  int    `json:"reported"`
	// Unpredictable says why events cannot tell; such a row counts for nothing.
	Unpredictable string `json:"unpredictable,omitempty"`
}

func (r row) wrong() bool { return r.Unpredictable == "" && r.Predicted != r.Reported }

// drive sends requests through Envoy and serve, and notes what came of them.
type drive struct {
	*shared
	why string // makes its rows unpredictable
}

type shared struct {
	engine     engine
	stack      *sim.Stack
	dir        string        // of configurations and logs
	quiet      time.Duration // without a new batch, the events of the last request are in
	hasty      bool
	blockSize  int
	hasAdapter bool
	random     *rand.Rand
	say        func(format string, a ...any)

	scenario string
	mu       sync.Mutex
	rows     []row
}

func (d *drive) unpredictable(why string) *drive { return &drive{d.shared, why} }

func (d *drive) note(text string) { d.say("  %s\n", text) }

// completion sends one and waits until its events are in.
func (d *drive) completion(ctx context.Context, name string, b body) error {
	_, err := d.text(ctx, name, b)
	return err
}

// text is completion with the answer.
func (d *drive) text(ctx context.Context, name string, b body) (string, error) {
	a, err := d.send(ctx, "/v1/completions", name, b)
	return a.Text, err
}

func (d *drive) chat(ctx context.Context, name string, b body) (string, error) {
	a, err := d.send(ctx, "/v1/chat/completions", name, b)
	return a.Message.Content, err
}

// choice is the answer of a completion or a chat.
type choice struct {
	Text    string
	Message struct{ Content string }
}

func (d *drive) send(ctx context.Context, path, name string, more body) (choice, error) {
	b := body{"model": modelName, "max_tokens": 4, "temperature": 0}
	maps.Copy(b, more)
	text, err := json.Marshal(b)
	if err != nil {
		return choice{}, err
	}
	id := uuid.NewString()
	var answer struct {
		Choices []choice
		Usage   sim.Usage
	}
	if err := d.call(ctx, http.MethodPost, d.stack.Proxy+path, text, id, &answer); err != nil {
		return choice{}, fmt.Errorf("%s: %w", name, err)
	}
	if len(answer.Choices) == 0 {
		return choice{}, fmt.Errorf("%s: an answer without a choice", name)
	}
	predicted, err := d.predicted(ctx, id)
	if err != nil {
		return choice{}, fmt.Errorf("%s: %w", name, err)
	}
	r := row{d.scenario, name, answer.Usage.Prompt, predicted, answer.Usage.Details.Cached, d.why}
	d.mu.Lock()
	d.rows = append(d.rows, r)
	d.say("%s", r.line())
	d.mu.Unlock()
	if d.why == "" {
		d.settle(ctx)
	}
	return answer.Choices[0], nil
}

// predicted reads the tokens off the card of the pick that was made.
func (d *drive) predicted(ctx context.Context, id string) (int, error) {
	var card struct {
		Unmatched *string
		Pods      []struct {
			Match struct {
				Tokens int `json:"cached_tokens"`
			}
		}
	}
	if err := d.call(ctx, http.MethodGet, "http://"+d.stack.Listen.Admin+"/v1/explain/"+id, nil, "", &card); err != nil {
		return 0, err
	}
	switch {
	case len(card.Pods) != 1:
		return 0, fmt.Errorf("the pick knows %d pods, want 1", len(card.Pods))
	case card.Unmatched != nil:
		return 0, fmt.Errorf("the prompt could not be matched: %s", *card.Unmatched)
	}
	return card.Pods[0].Match.Tokens, nil
}

// settle waits until no batch has come for a while: those of a request may arrive
// after its answer. And until nothing counts as held because serve placed it: what
// is predicted next then rests on events alone, unless the drive is hasty.
func (d *drive) settle(ctx context.Context) {
	last, since := uint64(0), time.Now()
	for end := since.Add(settleTime); time.Since(since) < d.quiet && time.Now().Before(end) && ctx.Err() == nil; {
		time.Sleep(20 * time.Millisecond)
		if now, idle := d.sequence(); now != last || !idle {
			last, since = now, time.Now()
		}
	}
}

// forget settles until no placement is expected to be announced any more, hasty
// or not: what the engine evicts while serve still expects it is predicted.
func (d *drive) forget(ctx context.Context) {
	hasty := d.hasty
	d.hasty = false
	d.settle(ctx)
	d.hasty = hasty
}

// settleTime is far more than any engine took for its last batch (1.05 s on two
// busy cores).
const settleTime = 20 * time.Second

// sequence is the number of the last batch, and whether what serve placed is over.
func (d *drive) sequence() (seq uint64, idle bool) {
	st, err := d.stack.State()
	if err != nil || len(st.Pods) != 1 || len(st.Pods[0].Ranks) == 0 {
		return 0, false
	}
	rank := st.Pods[0].Ranks[0]
	return rank.LastSeq, st.Totals.InFlight == 0 && (d.hasty || rank.Expected == 0)
}

// post calls the engine itself.
func (d *drive) post(ctx context.Context, url string) error {
	return d.call(ctx, http.MethodPost, url, nil, "", nil)
}

func (d *drive) call(ctx context.Context, method, url string, text []byte, id string, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(text))
	if err != nil {
		return err
	}
	if text != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if id != "" {
		req.Header.Set("X-Request-Id", id)
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return err
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("%s: %s: %.300s", url, resp.Status, answer)
	case into == nil:
		return nil
	}
	return json.Unmarshal(answer, into)
}

// restart kills the engine and starts it again, and waits until serve has seen
// both.
func (d *drive) restart(ctx context.Context) error {
	d.engine.kill()
	if err := d.stack.Serve.Until(time.Minute, func() error {
		if d.stack.Synced() == nil {
			return errors.New("serve does not notice that the engine is gone")
		}
		return nil
	}); err != nil {
		return err
	}
	d.note("killed and started again")
	if err := d.engine.start(ctx); err != nil {
		return err
	}
	return d.stack.Serve.Until(time.Minute, d.stack.Synced)
}

// about asks the engine for what the scenarios depend on.
func (d *drive) about(ctx context.Context) error {
	var list struct {
		Data []struct{ ID string }
	}
	if err := d.call(ctx, http.MethodGet, "http://"+d.engine.addr()+"/v1/models", nil, "", &list); err != nil {
		return err
	}
	d.hasAdapter = slices.ContainsFunc(list.Data, func(m struct{ ID string }) bool { return m.ID == adapter })
	return nil
}
