package tap

import (
	"context"
	"errors"
	"io"

	"github.com/eppctl/eppctl/internal/core/recording"
	"github.com/eppctl/eppctl/internal/inspect"
)

// Server is the source of what a running serve receives.
type Server struct {
	Addr string
	Open func(ctx context.Context, pods []string) (io.ReadCloser, error)
	Pods []string // patterns; empty = all
}

func (s *Server) String() string { return "serve at " + s.Addr }

// Run implements Source.
func (s *Server) Run(ctx context.Context, emit func([]*recording.Record) error) error {
	body, err := s.Open(ctx, s.Pods)
	if err != nil {
		return quietly(ctx, err)
	}
	defer body.Close()
	r, err := recording.NewReader(body)
	if err != nil {
		return s.lost(ctx, err)
	}
	for {
		rec, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return s.lost(ctx, err)
		case rec.Type == recording.TypeAccount:
			return s.lost(ctx, errors.New("serve is ending"))
		}
		if err := emit([]*recording.Record{rec}); err != nil {
			return err
		}
	}
}

// quietly drops the error of a call that we have ended ourselves.
func quietly(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (s *Server) lost(ctx context.Context, err error) error {
	why := err.Error()
	if errors.Is(err, recording.ErrCut) {
		why = "the connection was closed"
	}
	return quietly(ctx, &inspect.Error{
		Kind: inspect.Unreachable, Code: "E_CONNECT", What: "the stream of serve at " + s.Addr + " has ended", Why: why, Err: err,
		Hint: "serve was stopped, or this reader stood still for too long; what came until then is shown",
	})
}
