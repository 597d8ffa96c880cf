package out

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean makes text from the wire safe to print: control and format characters
// (escape sequences, line ends, direction overrides) and bytes that are no UTF-8
// become visible escapes.
func Clean(s string) string {
	if !strings.ContainsFunc(s, unsafe) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case !unsafe(r):
			b.WriteRune(r)
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		i += n
	}
	return b.String()
}

// unsafe covers what unicode.IsPrint refuses but the ideographic and no-break
// spaces; ranging over invalid UTF-8 gives RuneError, which may be genuine.
func unsafe(r rune) bool { return r == utf8.RuneError || !unicode.IsGraphic(r) }
