package sim

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
)

// Driver sends a workload's conversations to one address. Conversations start
// at their own times whatever the answers do (open loop); inside one, a turn
// waits for the answer before it.
type Driver struct {
	URL    string // "http://host:port"
	Client *http.Client
	// MaxInFlight bounds the requests under way; a turn that finds no room
	// waits. 0 = no bound.
	MaxInFlight int
	Done        func(Outcome) // called after each turn, from any goroutine; may be nil
}

// Outcome is what the client saw of one turn.
type Outcome struct {
	RequestID    string
	Conversation int
	Turn         int // from 0
	Pod          string
	Status       int // 0 when no response came
	Err          error
	Prompt       int // tokens, as the engine counted
	Cached       int
	Output       int
	Started      time.Time
	TTFT         time.Duration // to the first content
	Latency      time.Duration
}

// Failed is anything but a complete answer.
func (o Outcome) Failed() bool { return o.Err != nil || o.Status != http.StatusOK }

// Run drives the conversations to their ends and returns every turn's outcome.
// A conversation ends early when a turn fails: its history would have a hole.
// Turns that were not sent for that reason are not in the result.
func (d *Driver) Run(ctx context.Context, list []Conversation) []Outcome {
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		all  []Outcome
		room chan struct{}
	)
	if d.MaxInFlight > 0 {
		room = make(chan struct{}, d.MaxInFlight)
	}
	begin := time.Now()
	for _, c := range list {
		wg.Go(func() {
			wait(ctx, time.Until(begin.Add(c.Start)))
			d.converse(ctx, c, room, func(o Outcome) {
				mu.Lock()
				all = append(all, o)
				mu.Unlock()
				if d.Done != nil {
					d.Done(o)
				}
			})
		})
	}
	wg.Wait()
	return all
}

type chatMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

func (d *Driver) converse(ctx context.Context, c Conversation, room chan struct{}, done func(Outcome)) {
	history := []chatMessage{{"system", c.System}}
	for i, text := range c.Turns {
		wait(ctx, c.Think[i])
		if ctx.Err() != nil {
			return
		}
		if room != nil {
			select {
			case room <- struct{}{}:
			case <-ctx.Done():
				return
			}
		}
		history = append(history, chatMessage{"user", text})
		o, answer := d.turn(ctx, c, history)
		o.Turn = i
		if room != nil {
			<-room
		}
		done(o)
		if o.Failed() {
			return
		}
		history = append(history, chatMessage{"assistant", answer})
	}
}

// turn sends one streaming chat request and reads its answer to the end.
func (d *Driver) turn(ctx context.Context, c Conversation, history []chatMessage) (Outcome, string) {
	o := Outcome{RequestID: uuid.NewString(), Conversation: c.ID, Started: time.Now()}
	body, err := json.Marshal(map[string]any{"model": c.Model, "messages": history, "max_tokens": c.Output,
		"stream": true, "stream_options": map[string]bool{"include_usage": true}})
	if err != nil {
		o.Err = err
		return o, ""
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.URL+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		o.Err = err
		return o, ""
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("x-request-id", o.RequestID)
	client := d.Client
	if client == nil {
		client = http.DefaultClient
	}
	resp, err := client.Do(req)
	if err != nil {
		o.Err = err
		return o, ""
	}
	defer resp.Body.Close()
	o.Status, o.Pod = resp.StatusCode, resp.Header.Get(ServedBy)
	if o.Status != http.StatusOK {
		b, _ := io.ReadAll(io.LimitReader(resp.Body, 512))
		o.Err = fmt.Errorf("status %d: %s", o.Status, bytes.TrimSpace(b))
		return o, ""
	}
	answer, err := o.readStream(resp.Body)
	o.Err = err
	o.Latency = time.Since(o.Started)
	return o, answer
}

// readStream reads server-sent events up to [DONE]; a stream that ends without
// it was cut.
func (o *Outcome) readStream(r io.Reader) (string, error) {
	var answer strings.Builder
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		if data == "[DONE]" {
			return answer.String(), nil
		}
		var chunk struct {
			Choices []struct {
				Delta struct{ Content string }
			}
			Usage *Usage
		}
		if err := json.Unmarshal([]byte(data), &chunk); err != nil {
			return "", fmt.Errorf("event %.40q: %w", data, err)
		}
		for _, c := range chunk.Choices {
			if o.TTFT == 0 && c.Delta.Content != "" {
				o.TTFT = time.Since(o.Started)
			}
			answer.WriteString(c.Delta.Content)
		}
		if u := chunk.Usage; u != nil {
			o.Prompt, o.Output, o.Cached = u.Prompt, u.Output, u.Details.Cached
		}
	}
	if err := lines.Err(); err != nil {
		return "", fmt.Errorf("stream: %w", err)
	}
	return "", fmt.Errorf("stream: %w", io.ErrUnexpectedEOF)
}

// Usage is the usage object of an OpenAI response.
type Usage struct {
	Prompt  int `json:"prompt_tokens"`
	Output  int `json:"completion_tokens"`
	Details struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}
