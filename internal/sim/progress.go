package sim

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// progress draws a bar on a terminal, and a line every quarter elsewhere. step
// may be called from any goroutine.
type progress struct {
	w     io.Writer
	tty   bool
	name  string
	total int

	mu    sync.Mutex
	done  int
	drawn time.Time
}

func newProgress(w io.Writer, name string, total int) *progress {
	f, ok := w.(*os.File)
	return &progress{w: w, tty: ok && term.IsTerminal(int(f.Fd())), name: name, total: total}
}

func (p *progress) step() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done++
	if !p.tty {
		if q := max(p.total/4, 1); p.done%q == 0 || p.done == p.total {
			fmt.Fprintf(p.w, "%s: %d of %d requests\n", p.name, p.done, p.total)
		}
		return
	}
	// Ten frames a second are smooth enough and cost nothing.
	if now := time.Now(); p.done == p.total || now.Sub(p.drawn) > 100*time.Millisecond {
		p.drawn = now
		p.draw()
	}
}

func (p *progress) draw() {
	const width = 40
	full := width * p.done / p.total
	fmt.Fprintf(p.w, "\r%-12s [%s%s] %d/%d ", p.name, strings.Repeat("#", full), strings.Repeat(".", width-full), p.done, p.total)
}

// end leaves the bar's line.
func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tty {
		p.draw()
		fmt.Fprintln(p.w)
	}
}
