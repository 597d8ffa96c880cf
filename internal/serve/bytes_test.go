package serve

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/affinity"
	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/core/prompt"
	"github.com/eppctl/eppctl/internal/core/reason"
)

// endingSoon is a context that has ended once it was looked at some times: no clock decides
// how far a call gets.
type endingSoon struct {
	context.Context
	looks int
}

func (c *endingSoon) Err() error {
	if c.looks--; c.looks < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

// TestBytesEnd: bytes are compared until the context ends. What was read by then counts
// as so much of the whole; where it is nothing, bytes are named among who could not tell.
func TestBytesEnd(t *testing.T) {
	r := newRig(t, rigOptions{})
	body := `{"model":"m","prompt":"` + strings.Repeat("text ", 40_000) + `"}`
	for _, tc := range []struct {
		name     string
		looks    int
		provider string
		tried    []pick.Attempt
		least    int // chunks
		most     int
		bytes    int
	}{
		{"all", 100, byBytes, nil, 390, 390, len(`prompt""`) + 200_000},
		{"while they are read", 4, byBytes, nil, 1, 389, len(body)},
		{"before", 0, "", []pick.Attempt{{Provider: byBytes, Why: reason.TokenizeSlow}}, 0, 0, len(body)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var q pick.Query
			r.picker.placeByBytes(&endingSoon{t.Context(), tc.looks}, []byte(body), "", &q)
			if q.Origin.Provider != tc.provider || !slices.Equal(q.Origin.Tried, tc.tried) {
				t.Errorf("%+v", q.Origin)
			}
			if n := len(q.Bytes.Keys); n < tc.least || n > tc.most || q.Bytes.Bytes != tc.bytes {
				t.Errorf("%d chunks of %d bytes, %d bytes", n, affinity.ChunkBytes, q.Bytes.Bytes)
			}
		})
	}
}

// TestBeforeBytes: who is asked before bytes leaves them a tenth of the time.
func TestBeforeBytes(t *testing.T) {
	end := time.Now().Add(time.Hour)
	ctx, cancel := context.WithDeadline(t.Context(), end)
	defer cancel()
	for _, tc := range []struct {
		name        string
		ctx         context.Context
		bytes       bool
		least, most time.Duration // kept
	}{
		{"with bytes", ctx, true, 5 * time.Minute, 6 * time.Minute},
		{"without", ctx, false, 0, 0},
		{"no deadline", t.Context(), true, 0, 0},
	} {
		asking, done := beforeBytes(tc.ctx, &prompt.Chain{Bytes: tc.bytes})
		defer done()
		if got, ok := asking.Deadline(); ok && (end.Sub(got) < tc.least || end.Sub(got) > tc.most) {
			t.Errorf("%s: %v are kept", tc.name, end.Sub(got))
		}
	}
}

// TestPatternEnds: TK-43. A native tokenizer whose pattern backtracks without end is given
// up by its deadline, long before the search would end by itself, and the next is asked.
func TestPatternEnds(t *testing.T) {
	e := newEngineServer(t, map[string]string{"/tokenize": `{"tokens":[3],"count":1}`})
	folder := modelFolder(t, map[string]func(string) string{"tokenizer.json": swap(`|'d)`, `|'d|(?:(?:a|ab)(?:b|ba)?)+!)`)})
	m := Model{Tokenizer: Tokenizer{Source: folder}, Tokenize: Endpoints{URLs: []string{e.url}, Timeout: 30 * time.Second}}
	r := newChainRig(t, m, func(l *Limits) { l.TokenizeTimeout = 20 * time.Millisecond })
	a := r.ask(completionPath, `{"model":"sql","prompt":"`+strings.Repeat("ab", 100)+`"}`)
	if a.Provider != "tokenize" || tried(a) != "native tokenize-deadline, render tokenizer-missing" {
		t.Errorf("%+v", a)
	}
}
