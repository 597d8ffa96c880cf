package out

import (
	"bytes"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
)

// JSON makes a JSON text safe to print on a terminal: what Clean would escape
// becomes an escape of JSON, so that it means the same. Valid JSON has such
// characters inside strings only; those below 0x20 are escaped in it already, or
// are the white space between values.
func JSON(text []byte) []byte {
	if !bytes.ContainsFunc(text, hidden) {
		return text
	}
	var b []byte
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		switch {
		case !hidden(r) || r == utf8.RuneError && n == 1:
			b = append(b, text[i:i+n]...)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			b = fmt.Appendf(b, `\u%04x\u%04x`, high, low)
		default:
			b = fmt.Appendf(b, `\u%04x`, r)
		}
		i += n
	}
	return b
}

func hidden(r rune) bool { return r > 0x7e && unsafe(r) }

// YAML turns a JSON text into a YAML document that is safe to print. A text with
// control characters in it stays as JSON, which is YAML too: the library prints
// them raw, and no valid document where a key has a line end.
func YAML(text []byte) ([]byte, error) {
	text = JSON(text)
	if controls(text) {
		return append(bytes.TrimSpace(text), '\n'), nil
	}
	return yaml.JSONToYAML(text)
}

// controls reports whether a string in the JSON text has an escaped character
// beside quotes and backslashes.
func controls(text []byte) bool {
	for i := 0; i+1 < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		i++ // the escaped character is no beginning of another escape
		switch text[i] {
		case '"', '\\', '/':
		case 'u':
			if !bytes.HasPrefix(text[i:], []byte("u003c")) && !bytes.HasPrefix(text[i:], []byte("u003e")) && !bytes.HasPrefix(text[i:], []byte("u0026")) {
				return true // encoding/json escapes < > & for HTML's sake
			}
		default:
			return true
		}
	}
	return false
}
