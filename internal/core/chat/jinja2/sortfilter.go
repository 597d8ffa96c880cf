package jinja2

import (
	"sort"
	"strings"
)

// attrGetter returns a function that looks up a dotted attribute; one for None
// is the value itself. after changes what was found.
func attrGetter(attribute, fallback Value, after func(Value) (Value, error)) (func(Value) (Value, error), error) {
	var path []Value
	switch k := kindOf(attribute); k {
	case kNone:
	case kInt:
		path = []Value{attribute}
	case kString:
		for part := range strings.SplitSeq(attribute.AsString(), ".") {
			if n, ok := number(part); ok {
				path = append(path, Int(int64(n)))
			} else {
				path = append(path, String(part))
			}
		}
	default:
		return nil, typeError("an attribute name", k)
	}
	return func(v Value) (_ Value, err error) {
		for _, key := range path {
			if v, err = getitem(v, key); err != nil {
				return undefined, err
			}
			if v.IsUndefined() && !fallback.IsNone() {
				v = fallback
			}
		}
		if after != nil {
			return after(v)
		}
		return v, nil
	}, nil
}

// foldCase is the key by which text is sorted without its case.
func (r *render) foldCase(v Value) (Value, error) {
	if !IsText(v) {
		return v, nil
	}
	if err := r.meter.text(len(v.AsString())); err != nil {
		return undefined, err
	}
	return String(lower(v.AsString())), nil
}

func (r *render) unlessTrue(caseSensitive Value) func(Value) (Value, error) {
	if caseSensitive.IsTruthy() {
		return nil
	}
	return r.foldCase
}

// sorted sorts items stably by what key returns.
func (r *render) sorted(items []Value, key func(Value) (Value, error), reversed bool) ([]Value, error) {
	keys := make([]Value, len(items))
	at := make([]int, len(items))
	for i, item := range items {
		var err error
		if keys[i], err = key(item); err != nil {
			return nil, err
		}
		at[i] = i
	}
	var failed error
	sort.SliceStable(at, func(i, j int) bool {
		if reversed { // equal items keep their order, as in Python
			i, j = j, i
		}
		order, err := r.order("<", keys[at[i]], keys[at[j]], 0)
		if order == unordered && err == nil {
			err = &Unsupported{"sorting NaN"}
		}
		if err != nil && failed == nil {
			failed = err
		}
		return order < 0
	})
	if len(items) == 1 || failed != nil {
		return items, failed
	}
	out := make([]Value, len(items))
	for i, from := range at {
		out[i] = items[from]
	}
	return out, nil
}

var dictsortArgs = signature{{"case_sensitive", Bool(false)}, {"by", String("key")}, {"reverse", Bool(false)}}

func filterDictsort(r *render, args []Value, kwargs map[string]Value) (Value, error) {
	var room [3]Value
	a, err := dictsortArgs.fill("dictsort", args[1:], kwargs, room[:])
	if err != nil {
		return undefined, err
	}
	if k := kindOf(args[0]); k != kDict {
		return undefined, typeError("dictsort", k)
	}
	by, ok := map[string]int{"key": 0, "value": 1}[a[1].String()[1:max(len(a[1].String())-1, 1)]]
	if !ok {
		return undefined, refuse("sorts a dict by something unknown")
	}
	pairs, err := callDict(r, args[0], "items", nil, nil)
	if err != nil {
		return undefined, err
	}
	fold := r.unlessTrue(a[0])
	items, err := r.sorted(pairs.AsList().Items, func(pair Value) (Value, error) {
		v := pair.AsList().Items[by]
		if fold != nil {
			return fold(v)
		}
		return v, nil
	}, a[2].IsTruthy())
	return List(items), err
}

var sortArgs = signature{{"reverse", Bool(false)}, {"case_sensitive", Bool(false)}, {"attribute", none}}

func filterSort(r *render, args []Value, kwargs map[string]Value) (Value, error) {
	var room [3]Value
	a, err := sortArgs.fill("sort", args[1:], kwargs, room[:])
	if err != nil {
		return undefined, err
	}
	if IsText(a[2]) && strings.Contains(a[2].AsString(), ",") {
		return undefined, &Unsupported{"sort by several attributes"}
	}
	key, err := attrGetter(a[2], none, r.unlessTrue(a[1]))
	if err != nil {
		return undefined, err
	}
	items, err := r.items(args[0])
	if err != nil {
		return undefined, err
	}
	items, err = r.sorted(items, key, a[0].IsTruthy())
	return List(items), err
}

var uniqueArgs = signature{{"case_sensitive", Bool(false)}, {"attribute", none}}

func filterUnique(r *render, args []Value, kwargs map[string]Value) (Value, error) {
	var room [2]Value
	a, err := uniqueArgs.fill("unique", args[1:], kwargs, room[:])
	if err != nil {
		return undefined, err
	}
	key, err := attrGetter(a[1], none, r.unlessTrue(a[0]))
	if err != nil {
		return undefined, err
	}
	items, err := r.items(args[0])
	if err != nil {
		return undefined, err
	}
	seen := map[string]bool{}
	var out []Value
	for _, item := range items {
		k, err := key(item)
		if err != nil {
			return undefined, err
		}
		var hash string
		switch kk := kindOf(k); {
		case kk == kString:
			if err := r.meter.text(len(k.AsString())); err != nil { // it is copied, and hashed
				return undefined, err
			}
			hash = "s" + k.AsString()
		case kk.number() || kk == kBig:
			if x := exact(k); x != nil {
				hash = "n" + x.RatString() // equal numbers are one key
			} else {
				hash, _ = scalarString(k)
			}
		case kk == kNone || kk == kUndefined:
			hash = kk.String()
		default:
			return undefined, typeError("unique", kk)
		}
		if !seen[hash] {
			seen[hash] = true
			out = append(out, item)
		}
	}
	return generator(out), nil
}

var extremumArgs = signature{{"case_sensitive", Bool(false)}, {"attribute", none}}

// extremum is min or max: the first of those that are best.
func extremum(name string, sign int) function {
	return func(r *render, args []Value, kwargs map[string]Value) (Value, error) {
		var room [2]Value
		a, err := extremumArgs.fill(name, args[1:], kwargs, room[:])
		if err != nil {
			return undefined, err
		}
		key, err := attrGetter(a[1], none, r.unlessTrue(a[0]))
		if err != nil {
			return undefined, err
		}
		items, err := r.items(args[0])
		if err != nil || len(items) == 0 {
			return undefined, err
		}
		best := items[0]
		bestKey, err := key(best)
		if err != nil {
			return undefined, err
		}
		for _, item := range items[1:] {
			k, err := key(item)
			if err != nil {
				return undefined, err
			}
			order, err := r.order(name, k, bestKey, 0)
			if err != nil {
				return undefined, err
			}
			if order != unordered && order*sign > 0 {
				best, bestKey = item, k
			}
		}
		return best, nil
	}
}
