package jinja2

import (
	"math"
	"strings"
)

// operators are Python's, which raise for wrong types.
var operators = map[string]function{
	"add": func(r *render, args []Value, _ map[string]Value) (v Value, err error) {
		if v, ok, err := r.join(args); ok {
			return v, err
		}
		v = args[0]
		for _, b := range args[1:] {
			if v, err = r.add(v, b); err != nil {
				return undefined, err
			}
		}
		return v, nil
	},
	"cat": func(r *render, args []Value, _ map[string]Value) (Value, error) {
		var room [8]string
		parts := room[:0]
		for _, a := range args {
			s, err := r.str(a)
			if err != nil {
				return undefined, err
			}
			parts = append(parts, s)
		}
		return r.made(strings.Join(parts, ""))
	},
	"op": func(r *render, args []Value, _ map[string]Value) (Value, error) {
		return r.arithmetic(args[0].AsString(), args[1], args[2])
	},
	"percent": func(r *render, args []Value, _ map[string]Value) (Value, error) {
		if kindOf(args[0]) != kString {
			return undefined, typeError("%", kindOf(args[0]), kindOf(args[1]))
		}
		return r.percent(args[0].AsString(), args[1].AsList().Items, nil)
	},
	"sign": func(_ *render, args []Value, _ map[string]Value) (Value, error) {
		v := args[1]
		k := kindOf(v)
		switch {
		case !k.number():
			return undefined, typeError("a sign", k)
		case args[0].AsString() == "+" && k != kBool:
			return v, nil
		case args[0].AsString() == "+":
			return Int(integral(v)), nil
		case k == kFloat:
			return Float(-v.AsFloat()), nil
		case integral(v) == math.MinInt64:
			return undefined, overflow()
		}
		return Int(-integral(v)), nil
	},
	"compare": func(r *render, args []Value, _ map[string]Value) (Value, error) {
		ok, err := r.compare(args[0].AsString(), args[1], args[2])
		return Bool(ok), err
	},
}

func overflow() error { return &Unsupported{"arithmetic beyond 64 bits"} }

// made charges a string that was built.
func (r *render) made(s string) (Value, error) { return String(s), r.meter.text(len(s)) }

// join adds strings in one go. Not ok: there is something else among them.
func (r *render) join(args []Value) (v Value, ok bool, err error) {
	n := 0
	for _, a := range args {
		if kindOf(a) != kString {
			return undefined, false, nil
		}
		n += len(a.AsString())
	}
	if err := r.meter.text(n); err != nil {
		return undefined, true, err
	}
	var b strings.Builder
	b.Grow(n)
	for _, a := range args {
		b.WriteString(a.AsString())
	}
	return String(b.String()), true, nil
}

func (r *render) add(a, b Value) (Value, error) {
	ka, kb := kindOf(a), kindOf(b)
	switch {
	case ka == kString && kb == kString:
		return r.made(a.AsString() + b.AsString())
	case ka == kList && kb == kList:
		x, y := a.AsList().Items, b.AsList().Items
		if err := r.meter.step(len(x) + len(y)); err != nil {
			return undefined, err
		}
		return List(append(append(make([]Value, 0, len(x)+len(y)), x...), y...)), nil
	}
	return r.arithmetic("+", a, b)
}

func (r *render) arithmetic(op string, a, b Value) (Value, error) {
	ka, kb := kindOf(a), kindOf(b)
	switch {
	case op == "%" && ka == kString:
		var named map[string]Value
		if kb == kDict {
			named = b.AsDict().Data
		}
		return r.formatted(a.AsString(), []Value{b}, named, kb == kList || kb == kDict)
	case op == "*" && (ka == kString || ka == kList) && (kb == kInt || kb == kBool):
		return r.repeat(a, integral(b))
	case op == "*" && (kb == kString || kb == kList) && (ka == kInt || ka == kBool):
		return r.repeat(b, integral(a))
	case ka == kBig && (kb.number() || kb == kBig), kb == kBig && ka.number():
		return undefined, overflow()
	case !ka.number() || !kb.number():
		return undefined, typeError(op, ka, kb)
	case ka == kFloat || kb == kFloat || op == "/":
		return floatOp(op, real(a), real(b))
	}
	return intOp(op, integral(a), integral(b))
}

func (r *render) repeat(v Value, n int64) (Value, error) {
	n = max(n, 0)
	if v.IsString() {
		s := v.AsString()
		if s != "" && n > int64(r.meter.limits.Output/len(s)) {
			return undefined, r.meter.room(r.meter.limits.Output + 1)
		}
		if err := r.meter.text(len(s) * int(n)); err != nil {
			return undefined, err
		}
		return String(strings.Repeat(s, int(n))), nil
	}
	items := v.AsList().Items
	if len(items) == 0 {
		return List(nil), nil
	}
	if n > int64(r.meter.limits.Steps/len(items)) {
		return undefined, r.meter.step(r.meter.limits.Steps + 1)
	}
	if err := r.meter.step(len(items) * int(n)); err != nil {
		return undefined, err
	}
	out := make([]Value, 0, len(items)*int(n))
	for range n {
		out = append(out, items...)
	}
	return List(out), nil
}

func zeroDivision() error { return refuse("divides by zero") }

func floatOp(op string, a, b float64) (Value, error) {
	switch op {
	case "+":
		return Float(a + b), nil
	case "-":
		return Float(a - b), nil
	case "*":
		return Float(a * b), nil
	case "**":
		if a == 0 && b < 0 {
			return undefined, zeroDivision()
		}
		if a < 0 && b != math.Trunc(b) {
			return undefined, &Unsupported{"a complex number"}
		}
		return Float(math.Pow(a, b)), nil
	}
	if b == 0 {
		return undefined, zeroDivision()
	}
	if op == "/" {
		return Float(a / b), nil
	}
	// As CPython's float_divmod.
	mod := math.Mod(a, b)
	div := (a - mod) / b
	if mod != 0 {
		if (b < 0) != (mod < 0) {
			mod += b
			div--
		}
	} else {
		mod = math.Copysign(0, b)
	}
	if op == "%" {
		return Float(mod), nil
	}
	if div == 0 {
		return Float(math.Copysign(0, a/b)), nil
	}
	floor := math.Floor(div)
	if div-floor > 0.5 {
		floor++
	}
	return Float(floor), nil
}

func intOp(op string, a, b int64) (Value, error) {
	switch op {
	case "+":
		if c := a + b; (c > a) == (b > 0) {
			return Int(c), nil
		}
	case "-":
		if c := a - b; (c < a) == (b > 0) {
			return Int(c), nil
		}
	case "*":
		if a == 0 || b == 0 {
			return Int(0), nil
		}
		if c := a * b; c/b == a && !(a == -1 && b == math.MinInt64) && !(b == -1 && a == math.MinInt64) {
			return Int(c), nil
		}
	case "**":
		return intPow(a, b)
	case "//", "%":
		if b == 0 {
			return undefined, zeroDivision()
		}
		if b == -1 && a == math.MinInt64 {
			break
		}
		q, m := a/b, a%b
		if m != 0 && (m < 0) != (b < 0) {
			q--
			m += b
		}
		if op == "%" {
			return Int(m), nil
		}
		return Int(q), nil
	}
	return undefined, overflow()
}

func intPow(a, b int64) (Value, error) {
	if b < 0 {
		return floatOp("**", float64(a), float64(b))
	}
	if a == 0 || a == 1 || a == -1 {
		switch {
		case b == 0 || a == 1 || a == -1 && b%2 == 0:
			return Int(1), nil
		case a == 0:
			return Int(0), nil
		}
		return Int(-1), nil
	}
	v := Int(1)
	for range b { // overflows after 63 rounds
		var err error
		if v, err = intOp("*", v.AsInt(), a); err != nil {
			return undefined, err
		}
	}
	return v, nil
}
