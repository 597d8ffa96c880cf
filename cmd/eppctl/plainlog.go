package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"

	"github.com/eppctl/eppctl/internal/inspect/out"
)

// plainLog writes what a person must know as the commands write it themselves:
// "warn: vllm-0: message: value; value". The pod stands first, numbers of rank 0
// say nothing. Its handlers may be used from any goroutine.
type plainLog struct {
	mu    *sync.Mutex
	w     io.Writer
	attrs []slog.Attr
}

func newPlainLog(w io.Writer) *slog.Logger { return slog.New(&plainLog{mu: &sync.Mutex{}, w: w}) }

// Enabled implements slog.Handler.
func (*plainLog) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }

// WithAttrs implements slog.Handler.
func (h *plainLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &plainLog{h.mu, h.w, append(h.attrs[:len(h.attrs):len(h.attrs)], attrs...)}
}

// WithGroup implements slog.Handler. Nobody here groups.
func (h *plainLog) WithGroup(string) slog.Handler { return h }

// Handle implements slog.Handler.
func (h *plainLog) Handle(_ context.Context, r slog.Record) error {
	attrs := h.attrs[:len(h.attrs):len(h.attrs)]
	r.Attrs(func(a slog.Attr) bool { attrs = append(attrs, a); return true })
	pod, rest := "", []string(nil)
	for _, a := range attrs {
		switch text := a.Value.String(); {
		case a.Key == "pod":
			pod = text + ": "
		case a.Key == "finding", a.Key == "err":
			rest = append(rest, text)
		case a.Key == "rank" && text == "0":
		default:
			rest = append(rest, a.Key+" "+text)
		}
	}
	line := pod + r.Message
	if len(rest) > 0 {
		line += ": " + strings.Join(rest, "; ")
	}
	level := "warn"
	if r.Level >= slog.LevelError {
		level = "error"
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := fmt.Fprintf(h.w, "%s: %s\n", level, out.Clean(line))
	return err
}
