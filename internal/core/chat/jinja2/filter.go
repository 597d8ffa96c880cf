package jinja2

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/eppctl/eppctl/internal/core/chat/jinja2/syntax"
)

// filters are Jinja2's, as they answer without autoescape, and tojson as
// transformers replaces it. What is not here is an error when it is reached.
var filters = map[string]function{
	"filter_default":    filterDefault,
	"filter_d":          filterDefault,
	"filter_length":     filterLength,
	"filter_count":      filterLength,
	"filter_trim":       filterTrim,
	"filter_string":     onText(func(s string) string { return s }),
	"filter_safe":       onText(func(s string) string { return s }),
	"filter_lower":      onText(lower),
	"filter_upper":      onText(upper),
	"filter_capitalize": onText(capitalize),
	"filter_title":      onText(filterTitle),
	"filter_replace":    filterReplace,
	"filter_indent":     filterIndent,
	"filter_center":     filterCenter,
	"filter_wordcount":  filterWordcount,
	"filter_format":     filterFormat,
	"filter_int":        filterInt,
	"filter_float":      filterFloat,
	"filter_abs":        filterAbs,
	"filter_round":      filterRound,
	"filter_tojson":     filterToJSON,
}

// onText is a filter over the str of a value.
func onText(f func(string) string) function {
	return func(r *render, args []Value, kwargs map[string]Value) (Value, error) {
		if len(args)+len(kwargs) > 1 {
			return undefined, refuse("gives a filter too many arguments")
		}
		s, err := r.str(args[0])
		if err != nil {
			return undefined, err
		}
		return r.made(f(s))
	}
}

var defaultArgs = signature{{"default_value", String("")}, {"boolean", Bool(false)}}

func filterDefault(_ *render, args []Value, kwargs map[string]Value) (Value, error) {
	var room [2]Value
	a, err := defaultArgs.fill("default", args[1:], kwargs, room[:])
	if err != nil {
		return undefined, err
	}
	if args[0].IsUndefined() || a[1].IsTruthy() && !args[0].IsTruthy() {
		return a[0], nil
	}
	return args[0], nil
}

func filterLength(r *render, args []Value, kwargs map[string]Value) (Value, error) {
	if len(args)+len(kwargs) > 1 {
		return undefined, refuse("gives length an argument")
	}
	switch k := kindOf(args[0]); k {
	case kString:
		s := args[0].AsString()
		return Int(int64(utf8.RuneCountInString(s))), r.meter.step(len(s) / textPerStep)
	case kList:
		return Int(int64(args[0].AsList().Len())), nil
	case kDict:
		return Int(int64(args[0].AsDict().Len())), nil
	case kUndefined:
		return Int(0), nil
	default:
		return undefined, typeError("length", k)
	}
}

var trimArgs = signature{{"chars", none}}

func filterTrim(r *render, args []Value, kwargs map[string]Value) (Value, error) {
	var room [1]Value
	a, err := trimArgs.fill("trim", args[1:], kwargs, room[:])
	if err != nil {
		return undefined, err
	}
	s, err := r.str(args[0])
	if err != nil || a[0].IsNone() {
		out := strip(s, "")
		if err == nil {
			err = r.meter.step((len(s) - len(out)) / 16)
		}
		return String(out), err
	}
	chars, err := want("strip", a[0])
	if err != nil || chars == "" {
		return String(s), err
	}
	return String(strip(s, chars)), r.meter.step(len(s) / 16)
}

// filterTitle begins a word behind white space, a dash or an opening bracket.
func filterTitle(s string) string {
	var b strings.Builder
	separates := func(c rune) bool { return syntax.IsSpace(c) || strings.ContainsRune("-({[<", c) }
	for s != "" {
		at := strings.IndexFunc(s, separates)
		if at < 0 {
			at = len(s)
		}
		if at > 0 {
			_, n := utf8.DecodeRuneInString(s)
			b.WriteString(upper(s[:n]))
			b.WriteString(lower(s[n:at]))
			s = s[at:]
			continue
		}
		_, n := utf8.DecodeRuneInString(s)
		b.WriteString(s[:n])
		s = s[n:]
	}
	return b.String()
}

var replaceArgs = signature{{"old", required}, {"new", required}, {"count", none}}

func filterReplace(r *render, args []Value, kwargs map[string]Value) (Value, error) {
	var room [3]Value
	a, err := replaceArgs.fill("replace", args[1:], kwargs, room[:])
	if err != nil {
		return undefined, err
	}
	var s [3]string
	for i, v := range []Value{args[0], a[0], a[1]} {
		if s[i], err = r.str(v); err != nil {
			return undefined, err
		}
	}
	count := int64(-1)
	if !a[2].IsNone() {
		k := kindOf(a[2])
		if k != kInt && k != kBool {
			return undefined, typeError("replace", k)
		}
		count = integral(a[2])
	}
	return r.replace(s[0], s[1], s[2], count)
}

var indentArgs = signature{{"width", Int(4)}, {"first", Bool(false)}, {"blank", Bool(false)}}

func filterIndent(r *render, args []Value, kwargs map[string]Value) (Value, error) {
	var room [3]Value
	a, err := indentArgs.fill("indent", args[1:], kwargs, room[:])
	if err != nil {
		return undefined, err
	}
	s, err := want("indent", args[0])
	if err != nil {
		return undefined, err
	}
	pad, err := r.padding("indent", a[0])
	if err != nil {
		return undefined, err
	}
	all := lines(s+"\n", false)
	if err := r.meter.text(len(s) + len(all)*(len(pad)+1)); err != nil {
		return undefined, err
	}
	for i, line := range all {
		if i > 0 && (line != "" || a[2].IsTruthy()) {
			all[i] = pad + line
		}
	}
	out := strings.Join(all, "\n")
	if a[1].IsTruthy() {
		out = pad + out
	}
	return String(out), nil
}

// padding is a str, or as many blanks as an int says.
func (r *render) padding(name string, v Value) (string, error) {
	switch k := kindOf(v); k {
	case kString:
		return v.AsString(), nil
	case kInt, kBool:
		n := max(integral(v), 0)
		if n > int64(r.meter.limits.Output) {
			return "", r.meter.room(r.meter.limits.Output + 1)
		}
		return strings.Repeat(" ", int(n)), r.meter.text(int(n))
	default:
		return "", typeError(name, k)
	}
}

var centerArgs = signature{{"width", Int(80)}}

func filterCenter(r *render, args []Value, kwargs map[string]Value) (Value, error) {
	var room [1]Value
	a, err := centerArgs.fill("center", args[1:], kwargs, room[:])
	if err != nil {
		return undefined, err
	}
	s, err := r.str(args[0])
	if err != nil {
		return undefined, err
	}
	if k := kindOf(a[0]); k != kInt {
		return undefined, typeError("center", k)
	}
	return r.justify("center", s, a[0].AsInt(), " ")
}

func filterWordcount(r *render, args []Value, kwargs map[string]Value) (Value, error) {
	if len(args)+len(kwargs) > 1 {
		return undefined, refuse("gives wordcount an argument")
	}
	s, err := r.str(args[0])
	n := int64(0)
	in := false
	for _, c := range s {
		word := c == '_' || unicode.IsLetter(c) || unicode.IsNumber(c)
		if word && !in {
			n++
		}
		in = word
	}
	if err == nil {
		err = r.meter.step(len(s) / 16)
	}
	return Int(n), err
}

func filterFormat(r *render, args []Value, kwargs map[string]Value) (Value, error) {
	s, err := r.str(args[0])
	if err != nil {
		return undefined, err
	}
	if len(args) > 1 && len(kwargs) > 0 {
		return undefined, refuse("formats by position and by name")
	}
	return r.percent(s, args[1:], kwargs)
}
