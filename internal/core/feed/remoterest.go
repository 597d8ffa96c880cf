package feed

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/tokenizer"
)

const (
	// How long an endpoint is left out that says it does not offer this for a
	// model, and how long one comes last that failed.
	notOfferedFor = 5 * time.Minute
	failedFor     = time.Second
	// One that gives no answer in time, or one without an end, costs a prompt all of
	// its deadline, 50 to 100 ms by default. It is left out, twice as long after each prompt that it
	// lets wait again: one prompt a second pays at first, one a minute later.
	hungFirst = time.Second
	hungLast  = time.Minute
	// unfair is a time in which no endpoint need answer: vLLM's renderer takes 7 ms
	// for a chat of 500 tokens. A prompt that had no more left says nothing of it.
	unfair = 10 * time.Millisecond
)

// A 404 can mean the path or the model, and paths differ by the shape of a request:
// what is remembered of it is all three. An endpoint that hangs does so whatever the
// shape, which then is 0. Images are fetched and taken apart before it answers, so that
// whether it does in time depends on whose server the client names: a silence then says
// nothing, lest one client's slow image cost all others their answers.
type restKey struct {
	url, model string
	shape      tokenizer.Shape
	media      bool
}

func (k restKey) whole() restKey { return restKey{url: k.url, model: k.model, media: k.media} }

// rest is how long an endpoint is not asked, or asked last.
type rest struct {
	since, until time.Time
	out          bool          // not to be asked at all
	pause        time.Duration // of one that hung, what until came of
	probed       bool          // of one that hung: a prompt is finding out whether it still does
}

// rests remembers endpoints that failed. Safe for concurrent use.
type rests struct {
	now func() time.Time

	mu sync.Mutex
	of map[restKey]rest
}

// turn is when an endpoint is asked.
type turn uint8

const (
	soon  turn = iota
	late       // it failed just now
	never      // it does not offer this
	hung       // it is left out because it gave no answer
)

// turn says when an endpoint is asked; mu is held.
func (r *rests) turn(k restKey, now time.Time) turn {
	if h, ok := r.of[k.whole()]; ok && (h.probed || now.Before(h.until)) {
		return hung
	}
	switch x := r.of[k]; {
	case !now.Before(x.until):
		return soon
	case x.out:
		return never
	}
	return late
}

// enter reports whether an endpoint may be asked now. Of one that hung it is one
// prompt at a time, the probe, which ends with answered, failed or left.
func (r *rests) enter(k restKey) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	h, ok := r.of[k.whole()]
	if !ok {
		return true
	}
	if h.probed || r.now().Before(h.until) {
		return false
	}
	h.probed = true
	r.of[k.whole()] = h
	return true
}

// answered forgets what spoke against an endpoint. An answer of which the request
// is the fault ends a hanging too.
func (r *rests) answered(k restKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.of, k)
	delete(r.of, k.whole())
}

// left says that the client did not wait for the answer.
func (r *rests) left(k restKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if h, ok := r.of[k.whole()]; ok {
		h.probed = false
		r.of[k.whole()] = h
	}
}

// failed notes a failure of a call that began at a time.
func (r *rests) failed(k restKey, err error, began time.Time) {
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.of) >= 2*pod.MaxMembers { // endpoints come and go
		clear(r.of)
	}
	_, huge := errors.AsType[errHuge](err) // costs as much as a hanging does
	slow := huge || errors.Is(err, context.DeadlineExceeded)
	h, hung := r.of[k.whole()]
	switch {
	case slow && !huge && (k.media || now.Sub(began) < unfair):
		if hung {
			h.probed = false
			r.of[k.whole()] = h
		}
	case slow && hung && h.since.After(began): // it hung for many at once, which is once
	case slow:
		pause := min(max(2*h.pause, hungFirst), hungLast)
		r.of[k.whole()] = rest{since: now, until: now.Add(pause), out: true, pause: pause}
	default:
		delete(r.of, k.whole()) // it answers
		x := rest{since: now, until: now.Add(failedFor)}
		if errors.Is(err, ErrNotOffered) {
			x.until, x.out = now.Add(notOfferedFor), true
		}
		r.of[k] = x
	}
}
