package event

import (
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"io"
)

var (
	errNotPage = errors.New("no list of events")
	errNoID    = errors.New("no event_id")
)

// Pulled is one event of an answer to TensorRT-LLM's POST /kv_cache_events.
type Pulled struct {
	ID   uint64 // consecutive per rank, from 0 at the engine's start
	Rank int    // attention data-parallel rank, -1 = not said
	Body []byte // the event as it came, for PullDecoder; valid until take returns
}

// ReadPage takes an answer apart and hands each event to take as it arrives. An
// empty answer is a good one. Asking took the events away from the engine, so
// what stands before a fault has been handed over. The caller bounds the reader;
// one event is held at a time.
func ReadPage(r io.Reader, take func(Pulled)) error {
	if err := readPage(r, take); err != nil {
		return fmt.Errorf("kv event page: %w", err)
	}
	return nil
}

func readPage(r io.Reader, take func(Pulled)) error {
	page := jsontext.NewDecoder(r, jsonOptions...)
	t, err := page.ReadToken()
	switch {
	case err != nil:
		return err
	case t.Kind() == jsontext.KindNull:
		return nil
	case t.Kind() != jsontext.KindBeginArray:
		return errNotPage
	}
	var w jsonWalk
	for n := 0; page.PeekKind() != jsontext.KindEndArray; n++ {
		body, err := page.ReadValue()
		if err == nil && len(body) > len("null") { // {} and null hold nothing
			var p Pulled
			if p, err = pulled(&w, body); err == nil {
				take(p)
			}
		}
		if err != nil {
			return fmt.Errorf("event %d: %w", n, err)
		}
	}
	_, err = page.ReadToken()
	return err
}

// pulled reads where the event belongs.
func pulled(w *jsonWalk, body []byte) (p Pulled, err error) {
	p = Pulled{Rank: -1, Body: body}
	has := false
	if w.open(body, jsontext.KindBeginObject) {
		for name, v, ok := w.member(); ok; name, v, ok = w.member() {
			switch string(name) {
			case `"event_id"`:
				p.ID, has = jsonUint(v)
			case `"attention_dp_rank"`:
				if n, ok := jsonInt(v, maxGroup); ok {
					p.Rank = n
				}
			}
		}
	}
	if !has {
		return p, errNoID
	}
	return p, w.err
}
