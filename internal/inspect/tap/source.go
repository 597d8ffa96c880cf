package tap

import (
	"context"

	"github.com/eppctl/eppctl/internal/core/recording"
)

// Source delivers records.
type Source interface {
	// Run hands records over, oldest first, until ctx ends, which is no error, or
	// there are no more. It waits for emit, and returns its error.
	Run(ctx context.Context, emit func([]*recording.Record) error) error
	// String names it for the header of a recording.
	String() string
}
