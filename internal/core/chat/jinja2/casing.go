package jinja2

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
)

// The case of letters as Python changes it: with Unicode's special casing, which
// package strings leaves out.

func upper(s string) string {
	if isASCII(s) {
		return strings.ToUpper(s)
	}
	return cases.Upper(language.Und).String(s)
}

func lower(s string) string {
	if isASCII(s) {
		return strings.ToLower(s)
	}
	return cases.Lower(language.Und).String(s)
}

// capitalize is str.capitalize: the first character in title case, the rest
// lower.
func capitalize(s string) string {
	if s == "" {
		return s
	}
	_, n := utf8.DecodeRuneInString(s)
	return titleChar(s[:n]) + lower(s[n:])
}

// titleChar is one character in title case.
func titleChar(s string) string {
	if isASCII(s) {
		return strings.ToUpper(s)
	}
	return cases.Title(language.Und, cases.NoLower).String(s)
}

// title is str.title: a letter behind one that has case is lower, any other is
// in title case.
func title(s string) string {
	var b strings.Builder
	inWord := false
	for i, c := range s {
		one := s[i : i+utf8.RuneLen(c)]
		if inWord {
			b.WriteString(lower(one))
		} else {
			b.WriteString(titleChar(one))
		}
		inWord = isUpper(c) || notUpper(c)
	}
	return b.String()
}

// What has a case to Python is more than letters, such as the numbers of Rome: the derived
// properties Uppercase and Lowercase. A title case letter is neither.

func isUpper(c rune) bool  { return unicode.IsUpper(c) || unicode.Is(unicode.Other_Uppercase, c) }
func isLower(c rune) bool  { return unicode.IsLower(c) || unicode.Is(unicode.Other_Lowercase, c) }
func notUpper(c rune) bool { return isLower(c) || unicode.IsTitle(c) }
func notLower(c rune) bool { return isUpper(c) || unicode.IsTitle(c) }
