// Package pyjson reads what Python's json.loads takes beyond JSON: the constants
// NaN, Infinity and -Infinity. Python's json.dumps writes them by default, so
// clients send them.
package pyjson

import "bytes"

const nan, infinity = "NaN", "Infinity"

// What stands for a constant in Numbers, byte for byte. json.loads itself makes an
// infinity of the second (CPython 3.11, Lib/json/decoder.py); no number is NaN, and
// IsNaN tells it from a 0.0 that was there before.
const zero, endless = "0.0", "1e999999"

// Numbers returns a copy of text in which a number of the same length stands for each
// constant that Python takes: text is JSON to Python if, and only if, the copy is JSON.
// Words that only look like one (NaNs, -NaN, 1Infinity) stay, and so does what stands
// in strings. It is nil when there is no constant. The time is linear.
func Numbers(text []byte) []byte {
	if !bytes.Contains(text, []byte(nan)) && !bytes.Contains(text, []byte(infinity)) {
		return nil
	}
	var out []byte
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i = stringEnd(text, i)
		case 'N', 'I':
			word, number := nan, zero
			if text[i] == 'I' {
				word, number = infinity, endless
			}
			if !stands(text, i, word) {
				continue
			}
			if out == nil {
				out = bytes.Clone(text)
			}
			copy(out[i:], number)
			i += len(word) - 1
		}
	}
	return out
}

// IsNaN reports whether the value that begins at this offset of a text for which
// Numbers gave a copy is NaN there.
func IsNaN(text []byte, offset int64) bool {
	return offset >= 0 && offset < int64(len(text)) && text[offset] == 'N'
}

// stringEnd is where the string that begins at i ends: at its last quote, or with text.
func stringEnd(text []byte, i int) int {
	for i++; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return i
}

// stands reports whether the word is a value of its own at i. A number would swallow
// the digits beside it, where Python sees two values.
func stands(text []byte, i int, word string) bool {
	if !bytes.HasPrefix(text[i:], []byte(word)) {
		return false
	}
	before, after := i-1, i+len(word)
	if word == infinity && before >= 0 && text[before] == '-' {
		before--
	}
	return (before < 0 || isBorder(text[before])) && (after == len(text) || isBorder(text[after]))
}

// isBorder reports whether c may stand beside a number in JSON: white space or
// punctuation. Whether it may stand just there is for the parser to say.
func isBorder(c byte) bool {
	switch c {
	case ' ', '\t', '\n', '\r', ',', ':', '[', ']', '{', '}':
		return true
	}
	return false
}
