package serve

import (
	"errors"
	"io"
	"sync/atomic"
)

// budget bounds the bytes that several readers hold together, so that however
// many bodies are under way at once, they fill no memory. Safe for concurrent use.
type budget struct{ held atomic.Int64 }

var errBudget = errors.New("too many bytes are being read")

// budgetReader counts what it has read against a budget until release.
type budgetReader struct {
	from  io.Reader
	of    *budget
	limit int64
	held  int64
}

// reader reads from r as long as all of the budget's readers hold at most limit.
func (b *budget) reader(r io.Reader, limit int64) *budgetReader {
	return &budgetReader{from: r, of: b, limit: limit}
}

func (r *budgetReader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	r.held += int64(n)
	if r.of.held.Add(int64(n)) > r.limit {
		return n, errBudget
	}
	return n, err
}

// release gives back what was read.
func (r *budgetReader) release() {
	r.of.held.Add(-r.held)
	r.held = 0
}
