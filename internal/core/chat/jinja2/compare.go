package jinja2

import (
	"cmp"
	"math"
	"math/big"
	"strings"
)

// compare is a comparison by its operator.
func (r *render) compare(op string, a, b Value) (bool, error) {
	switch op {
	case "==":
		return r.equal(a, b, 0)
	case "!=":
		ok, err := r.equal(a, b, 0)
		return !ok, err
	case "in":
		return r.contains(b, a)
	case "not in":
		ok, err := r.contains(b, a)
		return !ok, err
	}
	order, err := r.order(op, a, b, 0)
	if err != nil || order == unordered {
		return false, err
	}
	switch op {
	case "<":
		return order < 0, nil
	case "<=":
		return order <= 0, nil
	case ">":
		return order > 0, nil
	}
	return order >= 0, nil
}

// equal is Python's ==, which raises for nothing that a template holds.
func (r *render) equal(a, b Value, depth int) (bool, error) {
	if err := r.meter.step(1); err != nil {
		return false, err
	}
	if depth > maxNesting {
		return false, &Exceeded{"the depth of a value that is compared"}
	}
	ka, kb := kindOf(a), kindOf(b)
	switch {
	case ka == kBig || kb == kBig || ka == kFloat && kb == kInt || ka == kInt && kb == kFloat:
		x, y := exact(a), exact(b)
		return x != nil && y != nil && x.Cmp(y) == 0, nil
	case ka.number() && kb.number():
		if ka == kFloat || kb == kFloat {
			return real(a) == real(b), nil
		}
		return integral(a) == integral(b), nil
	case ka != kb:
		return false, nil
	}
	switch ka {
	case kString:
		x, y := a.AsString(), b.AsString()
		if len(x) != len(y) {
			return false, nil
		}
		return x == y, r.meter.step(len(x) / textPerStep)
	case kList:
		x, y := a.AsList().Items, b.AsList().Items
		if len(x) != len(y) {
			return false, nil
		}
		for i := range x {
			if ok, err := r.alike(x[i], y[i], depth+1); !ok {
				return false, err
			}
		}
		return true, nil
	case kDict:
		x, y := a.AsDict(), b.AsDict()
		if x.Len() != y.Len() {
			return false, nil
		}
		for _, key := range x.Keys {
			other, ok := getKey(y, keyValue(key))
			if !ok {
				return false, nil
			}
			if ok, err := r.alike(x.Data[key], other, depth+1); !ok {
				return false, err
			}
		}
		return true, nil
	case kNamespace, kGenerator:
		return a.AsDict() == b.AsDict(), nil
	case kCallable:
		return false, &Unsupported{"comparing functions"}
	}
	return true, nil // undefined, none
}

// alike is how Python compares what is in a container: the same object equals itself,
// even NaN. Of two NaNs it is not known here whether they are one: those of a request
// are, those that are worked out are not.
func (r *render) alike(a, b Value, depth int) (bool, error) {
	if isNaN(a) && isNaN(b) {
		return false, &Unsupported{"comparing NaN in a list or dict"}
	}
	return r.equal(a, b, depth)
}

func isNaN(v Value) bool { return v.IsFloat() && math.IsNaN(v.AsFloat()) }

// exact is a number's value, nil for what is none or not finite.
func exact(v Value) *big.Rat {
	switch kindOf(v) {
	case kBool, kInt:
		return new(big.Rat).SetInt64(integral(v))
	case kFloat:
		return new(big.Rat).SetFloat64(v.AsFloat()) // nil when not finite
	case kBig:
		x, _ := new(big.Rat).SetString(bigDigits(v))
		return x
	}
	return nil
}

// unordered is the order of NaN and anything.
const unordered = 2

// order is -1, 0 or 1, or unordered.
func (r *render) order(op string, a, b Value, depth int) (int, error) {
	if err := r.meter.step(1); err != nil {
		return 0, err
	}
	if depth > maxNesting {
		return 0, &Exceeded{"the depth of a value that is compared"}
	}
	ka, kb := kindOf(a), kindOf(b)
	switch {
	case ka == kString && kb == kString:
		x, y := a.AsString(), b.AsString()
		return strings.Compare(x, y), r.meter.step(min(len(x), len(y)) / textPerStep)
	case (ka == kInt || ka == kBool) && (kb == kInt || kb == kBool):
		return cmp.Compare(integral(a), integral(b)), nil
	case (ka.number() || ka == kBig) && (kb.number() || kb == kBig):
		x, y := exact(a), exact(b)
		if x != nil && y != nil {
			return x.Cmp(y), nil
		}
		return notFinite(a, b), nil
	case ka == kList && kb == kList:
		x, y := a.AsList().Items, b.AsList().Items
		for i := range min(len(x), len(y)) {
			same, err := r.alike(x[i], y[i], depth+1)
			if err != nil {
				return 0, err
			}
			if !same {
				return r.order(op, x[i], y[i], depth+1)
			}
		}
		return cmp.Compare(len(x), len(y)), nil
	}
	return 0, typeError(op, ka, kb)
}

// notFinite orders two numbers of which one is infinite or NaN.
func notFinite(a, b Value) int {
	f := func(v Value) float64 {
		if kindOf(v) == kBig {
			return 0 // any finite value
		}
		return real(v)
	}
	switch x, y := f(a), f(b); {
	case x < y:
		return -1
	case x > y:
		return 1
	case x == y:
		return 0
	}
	return unordered
}

// contains is item in container.
func (r *render) contains(container, item Value) (bool, error) {
	kc, ki := kindOf(container), kindOf(item)
	switch kc {
	case kString:
		if ki != kString {
			return false, typeError("in", ki, kc)
		}
		err := r.meter.step(len(container.AsString()) / textPerStep)
		return strings.Contains(container.AsString(), item.AsString()), err
	case kDict:
		if ki == kList || ki == kDict {
			return false, typeError("in", ki, kc)
		}
		_, ok := findKey(container.AsDict(), item)
		return ok, nil
	case kList, kGenerator, kUndefined:
		items, err := r.items(container)
		if err != nil {
			return false, err
		}
		for _, x := range items {
			if ok, err := r.alike(x, item, 0); ok || err != nil {
				return ok, err
			}
		}
		return false, nil
	}
	return false, typeError("in", ki, kc)
}
