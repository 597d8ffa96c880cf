package jinja2

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Filters of numbers.

var intArgs = signature{{"default", Int(0)}, {"base", Int(10)}}

// maxDigits is Python's own limit for reading an int.
const maxDigits = 4300

var floatArgs = signature{{"default", Float(0)}}

var roundArgs = signature{{"precision", Int(0)}, {"method", String("common")}}

func filterInt(_ *render, args []Value, kwargs map[string]Value) (Value, error) {
	var room [2]Value
	a, err := intArgs.fill("int", args[1:], kwargs, room[:])
	if err != nil {
		return undefined, err
	}
	v := args[0]
	switch k := kindOf(v); k {
	case kUndefined:
		return undefined, refuse("makes an undefined value a number")
	case kBool, kInt:
		return Int(integral(v)), nil
	case kBig:
		return v, nil
	case kFloat:
		return truncate(v.AsFloat(), a[0])
	case kString:
		if kindOf(a[1]) != kInt {
			return undefined, typeError("int", kindOf(a[1]))
		}
		if err := onlyASCIIDigits(v.AsString()); err != nil {
			return undefined, err
		}
		if n, ok := parseInt(v.AsString(), a[1].AsInt()); ok {
			if !n.IsInt64() {
				return String(bigMark + n.String()), nil
			}
			return Int(n.Int64()), nil
		}
		if f, ok := parseFloat(v.AsString()); ok && !math.IsInf(f, 0) {
			return truncate(f, a[0])
		}
	}
	return a[0], nil
}

func truncate(f float64, fallback Value) (Value, error) {
	switch {
	case math.IsNaN(f):
		return fallback, nil
	case math.IsInf(f, 0):
		return undefined, refuse("makes infinity an int")
	case f >= -0x1p63 && f < 0x1p63:
		return Int(int64(f)), nil
	}
	n, _ := new(big.Float).SetFloat64(f).Int(nil)
	return String(bigMark + n.String()), nil
}

// onlyASCIIDigits refuses what Python reads as a number and Go does not.
func onlyASCIIDigits(s string) error {
	for _, c := range s {
		if c >= utf8.RuneSelf && unicode.IsDigit(c) {
			return &Unsupported{"a number in digits of another script"}
		}
	}
	return nil
}

// parseInt is Python's int(s, base).
func parseInt(s string, base int64) (*big.Int, bool) {
	s = strip(s, "")
	digits := strings.TrimLeft(s, "+-")
	if len(s)-len(digits) > 1 || len(digits) > maxDigits || digits == "" || base < 0 || base == 1 || base > 36 {
		return nil, false
	}
	if digits[0] == '_' || digits[len(digits)-1] == '_' || strings.Contains(digits, "__") {
		return nil, false
	}
	prefix := map[int64]string{2: "0b", 8: "0o", 16: "0x"}[base]
	if prefix != "" && strings.HasPrefix(lower(digits), prefix) {
		digits = digits[2:]
	}
	if base != 0 {
		digits = strings.ReplaceAll(digits, "_", "")
	}
	n, ok := new(big.Int).SetString(digits, int(base))
	if ok && strings.HasPrefix(s, "-") {
		n.Neg(n)
	}
	return n, ok && digits[0] != '+' && digits[0] != '-'
}

// parseFloat is Python's float(s).
func parseFloat(s string) (float64, bool) {
	s = strip(s, "")
	if strings.ContainsAny(s, "xXpP") { // Go reads hexadecimal floats too
		return 0, false
	}
	if strings.HasPrefix(s, "_") || strings.HasSuffix(s, "_") || strings.Contains(s, "__") {
		return 0, false
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(s, "_", ""), 64)
	return f, err == nil || math.IsInf(f, 0)
}

func filterFloat(_ *render, args []Value, kwargs map[string]Value) (Value, error) {
	var room [1]Value
	a, err := floatArgs.fill("float", args[1:], kwargs, room[:])
	if err != nil {
		return undefined, err
	}
	switch k := kindOf(args[0]); k {
	case kUndefined:
		return undefined, refuse("makes an undefined value a number")
	case kBool, kInt, kFloat:
		return Float(real(args[0])), nil
	case kBig:
		f, err := strconv.ParseFloat(bigDigits(args[0]), 64)
		if err != nil {
			return undefined, refuse("makes a float of an int that is too large")
		}
		return Float(f), nil
	case kString:
		if err := onlyASCIIDigits(args[0].AsString()); err != nil {
			return undefined, err
		}
		if f, ok := parseFloat(args[0].AsString()); ok {
			return Float(f), nil
		}
	}
	return a[0], nil
}

func filterAbs(_ *render, args []Value, kwargs map[string]Value) (Value, error) {
	if len(args)+len(kwargs) > 1 {
		return undefined, refuse("gives abs an argument")
	}
	v := args[0]
	switch k := kindOf(v); {
	case k == kFloat:
		return Float(math.Abs(v.AsFloat())), nil
	case k == kBig:
		return String(bigMark + strings.TrimPrefix(bigDigits(v), "-")), nil
	case !k.number():
		return undefined, typeError("abs", k)
	case integral(v) == math.MinInt64:
		return undefined, overflow()
	case integral(v) < 0:
		return Int(-integral(v)), nil
	default:
		return Int(integral(v)), nil
	}
}

func filterRound(r *render, args []Value, kwargs map[string]Value) (Value, error) {
	var room [2]Value
	a, err := roundArgs.fill("round", args[1:], kwargs, room[:])
	if err != nil {
		return undefined, err
	}
	k := kindOf(args[0])
	if !k.number() {
		return undefined, typeError("round", k)
	}
	if kindOf(a[0]) != kInt || a[0].AsInt() < -300 || a[0].AsInt() > 300 {
		return undefined, &Unsupported{"this precision of round"}
	}
	precision := int(a[0].AsInt())
	method, _ := r.str(a[1])
	switch method {
	case "common":
		if k != kFloat {
			if precision < 0 {
				return undefined, &Unsupported{"round of an int to tens"}
			}
			return Int(integral(args[0])), nil
		}
		if precision < 0 {
			return undefined, &Unsupported{"round of a float to tens"}
		}
		f := args[0].AsFloat()
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return args[0], nil
		}
		// The decimal digits of the exact value, rounded half to even.
		f, err := strconv.ParseFloat(strconv.FormatFloat(f, 'f', precision, 64), 64)
		return Float(f), err
	case "ceil", "floor":
		scale := math.Pow(10, float64(precision))
		f := real(args[0]) * scale
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return undefined, refuse("makes infinity an int")
		}
		if method == "ceil" {
			f = math.Ceil(f)
		} else {
			f = math.Floor(f)
		}
		return Float(f / scale), nil
	}
	return undefined, refuse("rounds by an unknown method")
}
