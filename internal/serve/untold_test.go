package serve

import (
	"fmt"
	"testing"

	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/core/tokenizer/native"
)

// The length of a prompt is the request's own, and no detail of its reason.
func TestWhyPromptTooLong(t *testing.T) {
	if why, detail := whyUntold(fmt.Errorf("native: %w: 9 bytes", native.ErrLong)); why != reason.PromptTooLong || detail != "" {
		t.Errorf("%q %q", why, detail)
	}
}
