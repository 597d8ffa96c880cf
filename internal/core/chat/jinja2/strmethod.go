package jinja2

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/eppctl/eppctl/internal/core/chat/jinja2/syntax"
)

type strMethod func(r *render, s string, args []Value, kwargs map[string]Value) (Value, error)

// strMethods are the methods of a str.
var strMethods map[string]strMethod

func init() { // refers to itself by way of getattr
	strMethods = map[string]strMethod{
		"strip":  stripMethod("strip", strip),
		"lstrip": stripMethod("lstrip", stripLeft),
		"rstrip": stripMethod("rstrip", stripRight),
		"split": splitMethod("split", func(s, sep string, max int) []string {
			return strings.SplitN(s, sep, max+1)
		}, fields),
		"rsplit":       splitMethod("rsplit", rsplit, rfields),
		"splitlines":   splitLines,
		"startswith":   affix("startswith", strings.HasPrefix),
		"endswith":     affix("endswith", strings.HasSuffix),
		"upper":        plain("upper", upper),
		"lower":        plain("lower", lower),
		"title":        plain("title", title),
		"capitalize":   plain("capitalize", capitalize),
		"isdigit":      every("isdigit", unicode.IsDigit),
		"isalpha":      every("isalpha", unicode.IsLetter),
		"isalnum":      every("isalnum", func(c rune) bool { return unicode.IsLetter(c) || unicode.IsNumber(c) }),
		"isspace":      every("isspace", syntax.IsSpace),
		"isupper":      cased("isupper", isUpper, notUpper),
		"islower":      cased("islower", isLower, notLower),
		"replace":      replaceMethod,
		"find":         search("find", strings.Index, -1),
		"rfind":        search("rfind", strings.LastIndex, -1),
		"index":        search("index", strings.Index, -2),
		"rindex":       search("rindex", strings.LastIndex, -2),
		"count":        countMethod,
		"join":         joinMethod,
		"removeprefix": cut("removeprefix", strings.TrimPrefix),
		"removesuffix": cut("removesuffix", strings.TrimSuffix),
		"partition":    partition("partition", strings.Index),
		"rpartition":   partition("rpartition", strings.LastIndex),
		"format":       formatMethod,
		"zfill":        zfill,
		"ljust":        justify("ljust"),
		"rjust":        justify("rjust"),
		"center":       justify("center"),
	}
}

func strip(s, chars string) string { return stripLeft(stripRight(s, chars), chars) }

// stripLeft cuts white space, or any of chars unless that is "".
func stripLeft(s, chars string) string {
	if chars == "" {
		return strings.TrimLeftFunc(s, syntax.IsSpace)
	}
	return strings.TrimLeft(s, chars)
}

func stripRight(s, chars string) string {
	if chars == "" {
		return strings.TrimRightFunc(s, syntax.IsSpace)
	}
	return strings.TrimRight(s, chars)
}

// noKwargs is for the methods of C, which take positions only.
func noKwargs(name string, kwargs map[string]Value) error {
	if len(kwargs) > 0 {
		return refuse("gives str." + name + " a named argument")
	}
	return nil
}

// want is an argument that must be a str.
func want(name string, v Value) (string, error) {
	if k := kindOf(v); k != kString {
		return "", typeError("str."+name, k)
	}
	return v.AsString(), nil
}

func stripMethod(name string, cut func(s, chars string) string) strMethod {
	return func(r *render, s string, args []Value, kwargs map[string]Value) (Value, error) {
		if err := noKwargs(name, kwargs); err != nil || len(args) > 1 {
			return undefined, refuse("calls str." + name + " with wrong arguments")
		}
		if len(args) == 0 || args[0].IsNone() {
			out := cut(s, "")
			return String(out), r.meter.step((len(s) - len(out)) / 16)
		}
		chars, err := want(name, args[0])
		if err != nil || chars == "" {
			return String(s), err
		}
		return String(cut(s, chars)), r.meter.step(len(s) / 16)
	}
}

// plain is a method without arguments.
func plain(name string, f func(string) string) strMethod {
	return func(r *render, s string, args []Value, kwargs map[string]Value) (Value, error) {
		if len(args)+len(kwargs) > 0 {
			return undefined, refuse("gives str." + name + " an argument")
		}
		return r.made(f(s))
	}
}

func every(name string, ok func(rune) bool) strMethod {
	return func(r *render, s string, args []Value, kwargs map[string]Value) (Value, error) {
		if len(args)+len(kwargs) > 0 {
			return undefined, refuse("gives str." + name + " an argument")
		}
		if !isASCII(s) && name != "isspace" {
			return undefined, &Unsupported{"str." + name + " beyond ASCII"}
		}
		return Bool(s != "" && !strings.ContainsFunc(s, func(c rune) bool { return !ok(c) })), r.meter.step(len(s) / textPerStep)
	}
}

func cased(name string, is, isNot func(rune) bool) strMethod {
	return func(r *render, s string, args []Value, kwargs map[string]Value) (Value, error) {
		if len(args)+len(kwargs) > 0 {
			return undefined, refuse("gives str." + name + " an argument")
		}
		return Bool(strings.ContainsFunc(s, is) && !strings.ContainsFunc(s, isNot)), r.meter.step(len(s) / textPerStep)
	}
}

func replaceMethod(r *render, s string, args []Value, kwargs map[string]Value) (Value, error) {
	if err := noKwargs("replace", kwargs); err != nil || len(args) < 2 || len(args) > 3 {
		return undefined, refuse("calls str.replace with wrong arguments")
	}
	count := int64(-1)
	if len(args) == 3 {
		k := kindOf(args[2])
		if k != kInt && k != kBool {
			return undefined, typeError("str.replace", k)
		}
		count = integral(args[2])
	}
	from, err := want("replace", args[0])
	if err != nil {
		return undefined, err
	}
	to, err := want("replace", args[1])
	if err != nil {
		return undefined, err
	}
	return r.replace(s, from, to, count)
}

// replace is str.replace. The size of the result is known before it is made.
func (r *render) replace(s, from, to string, count int64) (Value, error) {
	n := int64(strings.Count(s, from))
	if count >= 0 {
		n = min(n, count)
	}
	if n == 0 {
		return String(s), r.meter.step(len(s) / textPerStep)
	}
	if to != "" && n > int64(r.meter.limits.Output/len(to)) {
		return undefined, r.meter.room(r.meter.limits.Output + 1)
	}
	if err := r.meter.text(len(s) + int(n)*len(to)); err != nil {
		return undefined, err
	}
	return String(strings.Replace(s, from, to, int(n))), nil
}

func joinMethod(r *render, s string, args []Value, kwargs map[string]Value) (Value, error) {
	if err := noKwargs("join", kwargs); err != nil || len(args) != 1 {
		return undefined, refuse("calls str.join with wrong arguments")
	}
	items, err := r.items(args[0])
	if err != nil {
		return undefined, err
	}
	parts := make([]string, len(items))
	for i, item := range items {
		if parts[i], err = want("join", item); err != nil {
			return undefined, err
		}
	}
	return r.joined(parts, s)
}

func (r *render) joined(parts []string, sep string) (Value, error) {
	n := len(sep) * max(len(parts)-1, 0)
	for _, p := range parts {
		n += len(p)
	}
	if err := r.meter.text(n); err != nil {
		return undefined, err
	}
	return String(strings.Join(parts, sep)), nil
}

func cut(name string, f func(s, affix string) string) strMethod {
	return func(_ *render, s string, args []Value, kwargs map[string]Value) (Value, error) {
		if err := noKwargs(name, kwargs); err != nil || len(args) != 1 {
			return undefined, refuse("calls str." + name + " with wrong arguments")
		}
		x, err := want(name, args[0])
		return String(f(s, x)), err
	}
}

func zfill(r *render, s string, args []Value, kwargs map[string]Value) (Value, error) {
	if err := noKwargs("zfill", kwargs); err != nil || len(args) != 1 || kindOf(args[0]) != kInt {
		return undefined, refuse("calls str.zfill with wrong arguments")
	}
	pad := args[0].AsInt() - int64(utf8.RuneCountInString(s))
	if pad <= 0 {
		return String(s), nil
	}
	if pad > int64(r.meter.limits.Output) {
		return undefined, r.meter.room(r.meter.limits.Output + 1)
	}
	if err := r.meter.text(int(pad) + len(s)); err != nil {
		return undefined, err
	}
	sign := ""
	if s != "" && (s[0] == '-' || s[0] == '+') {
		sign, s = s[:1], s[1:]
	}
	return String(sign + strings.Repeat("0", int(pad)) + s), nil
}

func justify(name string) strMethod {
	return func(r *render, s string, args []Value, kwargs map[string]Value) (Value, error) {
		if err := noKwargs(name, kwargs); err != nil || len(args) < 1 || len(args) > 2 || kindOf(args[0]) != kInt {
			return undefined, refuse("calls str." + name + " with wrong arguments")
		}
		fill := " "
		if len(args) == 2 {
			var err error
			if fill, err = want(name, args[1]); err != nil || utf8.RuneCountInString(fill) != 1 {
				return undefined, refuse("calls str." + name + " with wrong arguments")
			}
		}
		return r.justify(name, s, args[0].AsInt(), fill)
	}
}

func (r *render) justify(name, s string, width int64, fill string) (Value, error) {
	pad := width - int64(utf8.RuneCountInString(s))
	if pad <= 0 {
		return String(s), nil
	}
	if pad > int64(r.meter.limits.Output/len(fill)) {
		return undefined, r.meter.room(r.meter.limits.Output + 1)
	}
	if err := r.meter.text(int(pad)*len(fill) + len(s)); err != nil {
		return undefined, err
	}
	left := map[string]int64{"ljust": 0, "rjust": pad, "center": pad/2 + pad&width&1}[name]
	return String(strings.Repeat(fill, int(left)) + s + strings.Repeat(fill, int(pad-left))), nil
}

// formatMethod is str.format with plain fields: {}, {0}, {name}.
func formatMethod(r *render, s string, args []Value, kwargs map[string]Value) (Value, error) {
	var b strings.Builder
	next := 0
	for s != "" {
		at := strings.IndexAny(s, "{}")
		if at < 0 {
			b.WriteString(s)
			break
		}
		b.WriteString(s[:at])
		if strings.HasPrefix(s[at+1:], s[at:at+1]) {
			b.WriteByte(s[at])
			s = s[at+2:]
			continue
		}
		end := strings.IndexAny(s[at+1:], "{}")
		if s[at] == '}' || end < 0 || s[at+1+end] == '{' {
			return undefined, refuse("formats with an incomplete format")
		}
		field := s[at+1 : at+1+end]
		s = s[at+2+end:]
		v, ok := kwargs[field]
		switch n, digits := number(field); {
		case field == "":
			if ok = next < len(args); ok {
				v = args[next]
			}
			next++
		case digits:
			if ok = n < len(args); ok {
				v = args[n]
			}
		case strings.ContainsAny(field, ".[!:"):
			return undefined, &Unsupported{"this form of str.format"}
		}
		if !ok {
			return undefined, refuse("formats too few arguments")
		}
		text, err := r.str(v)
		if err != nil {
			return undefined, err
		}
		if err := r.meter.text(len(text)); err != nil {
			return undefined, err
		}
		b.WriteString(text)
	}
	return r.made(b.String())
}

func number(s string) (n int, ok bool) {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' || n > 1<<20 {
			return 0, false
		}
		n = n*10 + int(s[i]-'0')
	}
	return n, s != ""
}
