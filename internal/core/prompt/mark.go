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
