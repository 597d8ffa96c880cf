package out

import (
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// Cells counts the columns a terminal needs for s. Escape sequences are not
// expected: text is measured before it is painted.
func Cells(s string) int {
	n := 0
	for _, r := range s {
		n += cells(r)
	}
	return n
}

func cells(r rune) int {
	if r < 0x300 {
		return 1
	}
	if unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// Fit cuts s to at most n columns, the last being "…" when something was cut.
func Fit(s string, n int) string {
	if Cells(s) <= n {
		return s
	}
	if n <= 0 {
		return ""
	}
	used := 0
	for i, r := range s {
		if used+cells(r) > n-1 {
			return s[:i] + "…"
		}
		used += cells(r)
	}
	return s
}

// Wrap breaks s into lines of at most n columns, n being at least 1: at blanks, and
// inside of words that are longer than that. It returns at least one line.
func Wrap(s string, n int) []string {
	var lines []string
	for Cells(s) > n {
		used, blank, end := 0, -1, len(s)
		for i, r := range s {
			if r == ' ' && i > 0 {
				blank = i
			}
			if used += cells(r); used > n && i > 0 {
				end = i
				break
			}
		}
		if end == len(s) {
			break // one letter, wider than n
		}
		if blank > 0 {
			end = blank
		}
		lines = append(lines, strings.TrimRight(s[:end], " "))
		s = strings.TrimLeft(s[end:], " ")
	}
	if s != "" || len(lines) == 0 {
		lines = append(lines, s)
	}
	return lines
}
