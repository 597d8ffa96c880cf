package feed

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	prompts "github.com/eppctl/eppctl/internal/core/prompt"
	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/core/tokenizer"
)

// hanging is a client of a server that gives no answer while on is set. Its clock
// goes on by 15 ms whenever it is looked at, more than unfair, and by nothing else.
type hanging struct {
	*RemoteTokenizer
	on    atomic.Bool
	clock atomic.Int64 // ns
}

func newHanging(t *testing.T) *hanging {
	t.Helper()
	h := &hanging{}
	h.on.Store(true)
	release := make(chan struct{})
	e, _ := tokenizeServer(t, func(w http.ResponseWriter, r *http.Request) {
		if h.on.Load() {
			<-release
			return
		}
		replies(w, r)
	})
	t.Cleanup(func() { close(release) })
	h.RemoteTokenizer = tokenizeClient(t, e)
	h.rests.now = func() time.Time { return time.Unix(0, h.clock.Add(int64(15*time.Millisecond))) }
	return h
}

func (h *hanging) pass(d time.Duration) { h.clock.Add(int64(d)) }

// waits reports whether a prompt has to wait for its deadline.
func (h *hanging) waits(t *testing.T) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := h.Tokenize(ctx, secretText())
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	return !errors.Is(err, ErrHung)
}

// A server that hangs costs one prompt its deadline, and later one now and then,
// less and less often. It is asked as before once it answers.
func TestHungServerCostsOneDeadline(t *testing.T) {
	h := newHanging(t)
	for pause := hungFirst; pause <= 2*hungLast; pause *= 2 {
		var waited atomic.Int32
		var wg sync.WaitGroup
		for range 8 { // whoever comes while the first finds out does not wait
			wg.Go(func() {
				if h.waits(t) {
					waited.Add(1)
				}
			})
			if pause == hungFirst {
				wg.Wait() // there is nothing yet that would keep others from asking
			}
		}
		wg.Wait()
		if n := waited.Load(); n != 1 {
			t.Fatalf("%d prompts waited before a pause of %v", n, pause)
		}
		h.pass(min(pause, hungLast) - time.Second)
		if h.waits(t) {
			t.Errorf("it is asked before its pause of %v is over", pause)
		}
		h.pass(time.Second)
	}
	h.on.Store(false)
	for range 3 {
		if res, err := h.Tokenize(t.Context(), secretText()); err != nil || len(res.IDs) != 6 {
			t.Fatal(err)
		}
	}
	h.on.Store(true)
	if !h.waits(t) || h.waits(t) {
		t.Error("not left out again")
	}
	h.pass(hungFirst) // as the first time
	if !h.waits(t) {
		t.Error("no prompt finds out whether it answers")
	}
}

// Many that wait at the same time are one failure.
func TestHungForManyAtOnce(t *testing.T) {
	h := newHanging(t)
	began := h.rests.now()
	k := restKey{url: h.candidates("")[0].URL, model: "base", shape: tokenizer.Completion}
	for range 20 {
		h.rests.failed(k, context.DeadlineExceeded, began)
	}
	if p := h.rests.of[k.whole()].pause; p != hungFirst {
		t.Errorf("a pause of %v", p)
	}
}

// A probe that ends without a word about the server leaves the next one to find out:
// its client went away, or it had no time to wait.
func TestHungProbeSaysNothing(t *testing.T) {
	for name, end := range map[string]func(h *hanging){
		"the client left": func(h *hanging) {
			ctx, cancel := context.WithCancel(context.Background())
			time.AfterFunc(time.Millisecond, cancel)
			_, _ = h.Tokenize(ctx, secretText())
		},
		"no time": func(h *hanging) {
			k := restKey{url: h.candidates("")[0].URL, model: "base", shape: tokenizer.Completion}
			if h.rests.enter(k) {
				h.rests.failed(k, context.DeadlineExceeded, h.rests.now().Add(15*time.Millisecond))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHanging(t)
			h.waits(t)
			h.pass(hungFirst)
			end(h)
			if !h.waits(t) {
				t.Error("nobody finds out any more")
			}
		})
	}
}

// TestChainPassesAHungProviderBy: behind a provider that hangs the next is asked, for
// all prompts but the first at once.
func TestChainPassesAHungProviderBy(t *testing.T) {
	h := newHanging(t)
	good, _ := tokenizeServer(t, replies)
	c := prompts.Chain{Links: []prompts.Link{
		{Provider: h, Deadline: 20 * time.Millisecond},
		{Provider: tokenizeClient(t, good)},
	}}
	body := secretText().Body
	for i := range 10 {
		r, problem := prompts.Parse("/v1/completions", "", body, prompts.Limits{DefaultModel: "base"})
		if problem != nil {
			t.Fatal(problem)
		}
		heard := error(nil)
		c.Fallback = func(_ string, _ reason.Code, err error) { heard = err }
		a := c.Tokens(t.Context(), r, "base", body, nil)
		if len(a.IDs) != 6 || len(a.Tried) != 1 || a.Tried[0].Why != reason.TokenizeSlow || errors.Is(heard, ErrHung) != (i > 0) {
			t.Errorf("prompt %d: %d ids, tried %+v, %v", i, len(a.IDs), a.Tried, heard)
		}
	}
}

// Another model of the same server is another matter, another shape is not.
func TestHungWhateverTheShape(t *testing.T) {
	h := newHanging(t)
	h.waits(t)
	chat := tokenizer.Text{Model: "base", Shape: tokenizer.Chat, Body: []byte(`{"messages":[{"role":"user","content":"secret"}]}`)}
	if _, err := h.Tokenize(t.Context(), chat); !errors.Is(err, ErrHung) {
		t.Errorf("a chat: %v", err)
	}
	other := secretText()
	other.Model = "another"
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := h.Tokenize(ctx, other); errors.Is(err, ErrHung) {
		t.Errorf("another model: %v", err)
	}
}
