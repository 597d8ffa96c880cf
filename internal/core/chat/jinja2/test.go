package jinja2

import "strings"

// tests are Jinja2's, under all of their names.
var tests = map[string]function{}

func init() {
	yes := func(f func(v Value, k kind) bool) function {
		return func(_ *render, args []Value, kwargs map[string]Value) (Value, error) {
			if len(args)+len(kwargs) > 1 {
				return undefined, refuse("gives a test an argument that it does not have")
			}
			return Bool(f(args[0], kindOf(args[0]))), nil
		}
	}
	two := func(f func(r *render, a, b Value) (bool, error)) function {
		return func(r *render, args []Value, kwargs map[string]Value) (Value, error) {
			if len(args) != 2 || len(kwargs) > 0 {
				return undefined, refuse("calls a test with wrong arguments")
			}
			ok, err := f(r, args[0], args[1])
			return Bool(ok), err
		}
	}
	compare := func(op string) function {
		return two(func(r *render, a, b Value) (bool, error) { return r.compare(op, a, b) })
	}
	divides := func(r *render, v, by Value) (bool, error) {
		m, err := r.arithmetic("%", v, by)
		return err == nil && !m.IsTruthy(), err
	}
	parity := func(odd bool) function {
		return func(r *render, args []Value, kwargs map[string]Value) (Value, error) {
			if len(args)+len(kwargs) > 1 {
				return undefined, refuse("gives a test an argument that it does not have")
			}
			m, err := r.arithmetic("%", args[0], Int(2))
			if err != nil {
				return undefined, err
			}
			ok, err := r.equal(m, Int(map[bool]int64{true: 1}[odd]), 0)
			return Bool(ok), err
		}
	}
	cased := func(is, isNot func(rune) bool) function {
		return func(r *render, args []Value, _ map[string]Value) (Value, error) {
			s, err := r.str(args[0])
			return Bool(strings.ContainsFunc(s, is) && !strings.ContainsFunc(s, isNot)), err
		}
	}
	all := map[string]function{
		"defined":   yes(func(_ Value, k kind) bool { return k != kUndefined }),
		"undefined": yes(func(_ Value, k kind) bool { return k == kUndefined }),
		"none":      yes(func(_ Value, k kind) bool { return k == kNone }),
		"boolean":   yes(func(_ Value, k kind) bool { return k == kBool }),
		"true":      yes(func(v Value, k kind) bool { return k == kBool && v.AsBool() }),
		"false":     yes(func(v Value, k kind) bool { return k == kBool && !v.AsBool() }),
		"integer":   yes(func(_ Value, k kind) bool { return k == kInt || k == kBig }),
		"float":     yes(func(_ Value, k kind) bool { return k == kFloat }),
		"number":    yes(func(_ Value, k kind) bool { return k.number() || k == kBig }),
		"string":    yes(func(_ Value, k kind) bool { return k == kString }),
		"mapping":   yes(func(_ Value, k kind) bool { return k == kDict }),
		// Jinja2's undefined has a length and can be asked for items.
		"sequence": yes(func(_ Value, k kind) bool { return k == kString || k == kList || k == kDict || k == kUndefined }),
		"iterable": yes(func(_ Value, k kind) bool {
			return k == kString || k == kList || k == kDict || k == kUndefined || k == kGenerator
		}),
		"callable": yes(func(_ Value, k kind) bool { return k == kCallable || k == kUndefined }),
		"filter": yes(func(v Value, k kind) bool {
			return k == kString && functions["filter_"+v.AsString()] != nil
		}),
		"test": yes(func(v Value, k kind) bool {
			return k == kString && functions["test_"+v.AsString()] != nil
		}),
		"odd":         parity(true),
		"even":        parity(false),
		"divisibleby": two(divides),
		"upper":       cased(isUpper, notUpper),
		"lower":       cased(isLower, notLower),
		"in":          compare("in"),
		"sameas": two(func(_ *render, a, b Value) (bool, error) {
			ka, kb := kindOf(a), kindOf(b)
			switch {
			case ka != kb:
				return false, nil
			case ka == kNone || ka == kBool:
				return a.Equals(b), nil
			case ka == kList:
				return a.AsList() == b.AsList(), nil
			case ka == kDict || ka == kNamespace:
				return a.AsDict() == b.AsDict(), nil
			}
			return false, &Unsupported{"sameas of " + ka.String()}
		}),
	}
	for op, names := range map[string]string{
		"==": "== eq equalto", "!=": "!= ne", ">": "> gt greaterthan", ">=": ">= ge", "<": "< lt lessthan", "<=": "<= le",
	} {
		for name := range strings.FieldsSeq(names) {
			all[name] = compare(op)
		}
	}
	for name, fn := range all {
		functions["test_"+name] = fn
	}
}
