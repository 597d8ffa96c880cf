package out

import (
	"fmt"
	"strings"
)

// Plural counts a noun: "1 pod", "2 pods", "2 batches".
func Plural(n int, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "ch"):
		noun += "e"
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
