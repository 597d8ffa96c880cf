package jinja2

import (
	"strings"
	"unicode/utf8"

	"github.com/eppctl/eppctl/internal/core/chat/jinja2/syntax"
)

var splitArgs = signature{{"sep", none}, {"maxsplit", Int(-1)}}

// splitMethod is split or rsplit. max < 0 is no limit.
func splitMethod(name string, by func(s, sep string, max int) []string, space func(s string, max int) []string) strMethod {
	return func(r *render, s string, args []Value, kwargs map[string]Value) (Value, error) {
		var room [2]Value
		a, err := splitArgs.fill("str."+name, args, kwargs, room[:])
		if err != nil {
			return undefined, err
		}
		k := kindOf(a[1])
		if k != kInt && k != kBool {
			return undefined, typeError("str."+name, k)
		}
		limit := int(max(min(integral(a[1]), int64(len(s))+1), -1))
		if err := r.meter.step(len(s) / 16); err != nil {
			return undefined, err
		}
		var parts []string
		if a[0].IsNone() {
			parts = space(s, limit)
		} else {
			sep, err := want(name, a[0])
			if err != nil {
				return undefined, err
			}
			if sep == "" {
				return undefined, refuse("splits by nothing")
			}
			if limit < 0 {
				limit = len(s)
			}
			parts = by(s, sep, limit)
		}
		return r.strings(parts)
	}
}

// strings makes a list of str.
func (r *render) strings(parts []string) (Value, error) {
	items := make([]Value, len(parts))
	for i, p := range parts {
		items[i] = String(p)
	}
	return List(items), r.meter.step(len(items))
}

func fields(s string, max int) (out []string) {
	s = stripLeft(s, "")
	for s != "" {
		at := strings.IndexFunc(s, syntax.IsSpace)
		if at < 0 || max >= 0 && len(out) == max {
			if max < 0 || len(out) < max {
				s = stripRight(s, "")
			}
			return append(out, s)
		}
		out = append(out, s[:at])
		s = stripLeft(s[at:], "")
	}
	return out
}

func rfields(s string, max int) (out []string) {
	s = stripRight(s, "")
	for s != "" {
		at := strings.LastIndexFunc(s, syntax.IsSpace)
		if at < 0 || max >= 0 && len(out) == max {
			out = append(out, s)
			break
		}
		_, size := utf8.DecodeRuneInString(s[at:])
		out = append(out, s[at+size:])
		s = stripRight(s[:at], "")
	}
	reverse(out)
	return out
}

func rsplit(s, sep string, max int) (out []string) {
	for len(out) < max {
		at := strings.LastIndex(s, sep)
		if at < 0 {
			break
		}
		out = append(out, s[at+len(sep):])
		s = s[:at]
	}
	out = append(out, s)
	reverse(out)
	return out
}

func reverse[T any](s []T) {
	for i, j := 0, len(s)-1; i < j; i, j = i+1, j-1 {
		s[i], s[j] = s[j], s[i]
	}
}

var splitLinesArgs = signature{{"keepends", Bool(false)}}

func splitLines(r *render, s string, args []Value, kwargs map[string]Value) (Value, error) {
	var room [1]Value
	a, err := splitLinesArgs.fill("str.splitlines", args, kwargs, room[:])
	if err != nil {
		return undefined, err
	}
	if err := r.meter.step(len(s) / 16); err != nil {
		return undefined, err
	}
	return r.strings(lines(s, a[0].IsTruthy()))
}

// lines splits at what Python takes for the end of a line.
func lines(s string, keep bool) (out []string) {
	for s != "" {
		at := strings.IndexFunc(s, func(c rune) bool {
			return c >= '\n' && c <= '\r' || c >= 0x1c && c <= 0x1e || c == 0x85 || c == 0x2028 || c == 0x2029
		})
		if at < 0 {
			return append(out, s)
		}
		_, n := utf8.DecodeRuneInString(s[at:])
		if strings.HasPrefix(s[at:], "\r\n") {
			n = 2
		}
		if keep {
			out = append(out, s[:at+n])
		} else {
			out = append(out, s[:at])
		}
		s = s[at+n:]
	}
	return out
}

func partition(name string, at func(s, sep string) int) strMethod {
	return func(r *render, s string, args []Value, kwargs map[string]Value) (Value, error) {
		if err := noKwargs(name, kwargs); err != nil || len(args) != 1 {
			return undefined, refuse("calls str." + name + " with wrong arguments")
		}
		sep, err := want(name, args[0])
		if err != nil {
			return undefined, err
		}
		if sep == "" {
			return undefined, refuse("splits by nothing")
		}
		i := at(s, sep)
		switch {
		case i >= 0:
			return r.strings([]string{s[:i], sep, s[i+len(sep):]})
		case name == "partition":
			return r.strings([]string{s, "", ""})
		}
		return r.strings([]string{"", "", s})
	}
}
