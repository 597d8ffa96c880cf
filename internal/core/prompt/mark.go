package prompt

import "bytes"

// trimBOM drops the mark that Python skips. It reports false for text that is
// not in UTF-8 at all: one of the first two bytes of JSON in UTF-16 or UTF-32 is
// a NUL or part of a mark.
func trimBOM(b []byte) ([]byte, bool) {
	b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	if len(b) < 2 {
		return b, true
	}
	marked := b[0] == 0xfe && b[1] == 0xff || b[0] == 0xff && b[1] == 0xfe
	return b, !marked && b[0] != 0 && b[1] != 0
}

// withoutConstants replaces NaN, Infinity and -Infinity, which Python's reader
// takes and JSON has not, by numbers of the same length in a copy of b.
func withoutConstants(b []byte) (fixed []byte, changed bool) {
	inString := false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case c == '\\' && inString:
			i++
		case c == '"':
			inString = !inString
		case inString || c != 'N' && c != 'I':
		default:
			for _, word := range []string{"NaN", "Infinity"} {
				if !bytes.HasPrefix(b[i:], []byte(word)) {
					continue
				}
				if !changed {
					fixed, changed = bytes.Clone(b), true
				}
				copy(fixed[i:], "0       "[:len(word)])
				i += len(word) - 1
				break
			}
		}
	}
	return fixed, changed
}
