package jinja2

// Filters over sequences. Those that are generators in Python are so here.
func init() {
	for name, fn := range map[string]function{
		"filter_first":      filterFirst,
		"filter_last":       filterLast,
		"filter_list":       filterList,
		"filter_reverse":    filterReverse,
		"filter_join":       filterJoin,
		"filter_items":      filterItems,
		"filter_dictsort":   filterDictsort,
		"filter_sort":       filterSort,
		"filter_unique":     filterUnique,
		"filter_min":        extremum("min", -1),
		"filter_max":        extremum("max", 1),
		"filter_sum":        filterSum,
		"filter_map":        filterMap,
		"filter_select":     choose("select", true, false),
		"filter_reject":     choose("reject", false, false),
		"filter_selectattr": choose("selectattr", true, true),
		"filter_rejectattr": choose("rejectattr", false, true),
		"filter_batch":      filterBatch,
		"filter_slice":      filterSlice,
	} {
		functions[name] = fn
	}
}

func alone(name string, args []Value, kwargs map[string]Value) error {
	if len(args)+len(kwargs) > 1 {
		return refuse("gives " + name + " an argument")
	}
	return nil
}

func filterFirst(r *render, args []Value, kwargs map[string]Value) (Value, error) {
	if err := alone("first", args, kwargs); err != nil {
		return undefined, err
	}
	if args[0].IsList() { // without a copy
		if items := args[0].AsList().Items; len(items) > 0 {
			return items[0], nil
		}
		return undefined, nil
	}
	if IsText(args[0]) {
		return charAt(args[0].AsString(), 0), nil
	}
	items, err := r.items(args[0])
	if len(items) == 0 {
		return undefined, err
	}
	return items[0], err
}

func filterLast(r *render, args []Value, kwargs map[string]Value) (Value, error) {
	if err := alone("last", args, kwargs); err != nil {
		return undefined, err
	}
	if k := kindOf(args[0]); k == kGenerator {
		return undefined, typeError("last", k)
	}
	if args[0].IsList() {
		if items := args[0].AsList().Items; len(items) > 0 {
			return items[len(items)-1], nil
		}
		return undefined, nil
	}
	items, err := r.items(args[0])
	if len(items) == 0 {
		return undefined, err
	}
	return items[len(items)-1], err
}

func filterList(r *render, args []Value, kwargs map[string]Value) (Value, error) {
	if err := alone("list", args, kwargs); err != nil {
		return undefined, err
	}
	items, err := r.items(args[0])
	return List(items), err
}

func filterReverse(r *render, args []Value, kwargs map[string]Value) (Value, error) {
	if err := alone("reverse", args, kwargs); err != nil {
		return undefined, err
	}
	if IsText(args[0]) {
		s := []rune(args[0].AsString())
		reverse(s)
		return r.made(string(s))
	}
	items, err := r.items(args[0])
	reverse(items)
	if kindOf(args[0]) == kGenerator {
		return List(items), err
	}
	return generator(items), err
}

var joinArgs = signature{{"d", String("")}, {"attribute", none}}

func filterJoin(r *render, args []Value, kwargs map[string]Value) (Value, error) {
	var room [2]Value
	a, err := joinArgs.fill("join", args[1:], kwargs, room[:])
	if err != nil {
		return undefined, err
	}
	items, err := r.items(args[0])
	if err != nil {
		return undefined, err
	}
	get, err := attrGetter(a[1], none, nil)
	if err != nil {
		return undefined, err
	}
	parts := make([]string, len(items))
	for i, item := range items {
		if item, err = get(item); err != nil {
			return undefined, err
		}
		if parts[i], err = r.str(item); err != nil {
			return undefined, err
		}
	}
	sep, err := r.str(a[0])
	if err != nil {
		return undefined, err
	}
	return r.joined(parts, sep)
}

func filterItems(r *render, args []Value, kwargs map[string]Value) (Value, error) {
	if err := alone("items", args, kwargs); err != nil {
		return undefined, err
	}
	switch k := kindOf(args[0]); k {
	case kUndefined:
		return generator(nil), nil
	case kDict:
		pairs, err := callDict(r, args[0], "items", nil, nil)
		return generator(pairs.AsList().Items), err
	default:
		return undefined, typeError("items", k)
	}
}

var sumArgs = signature{{"attribute", none}, {"start", Int(0)}}

func filterSum(r *render, args []Value, kwargs map[string]Value) (Value, error) {
	var room [2]Value
	a, err := sumArgs.fill("sum", args[1:], kwargs, room[:])
	if err != nil {
		return undefined, err
	}
	get, err := attrGetter(a[0], none, nil)
	if err != nil {
		return undefined, err
	}
	items, err := r.items(args[0])
	total := a[1]
	if IsText(total) {
		return undefined, typeError("sum", kString)
	}
	for _, item := range items {
		if err == nil {
			item, err = get(item)
		}
		if err == nil {
			total, err = r.add(total, item)
		}
	}
	return total, err
}

func filterMap(r *render, args []Value, kwargs map[string]Value) (Value, error) {
	if !args[0].IsTruthy() {
		return generator(nil), nil
	}
	var apply func(Value) (Value, error)
	if attribute, ok := kwargs["attribute"]; ok && len(args) == 1 {
		fallback, ok := kwargs["default"]
		if !ok {
			fallback = none
		} else {
			delete(kwargs, "default")
		}
		if len(kwargs) > 1 {
			return undefined, refuse("gives map an argument that it does not have")
		}
		var err error
		if apply, err = attrGetter(attribute, fallback, nil); err != nil {
			return undefined, err
		}
	} else {
		if len(args) < 2 {
			return undefined, refuse("calls map without a filter")
		}
		name, err := want("map", args[1])
		if err != nil {
			return undefined, err
		}
		fn, ok := functions["filter_"+name]
		if !ok {
			return undefined, &Unsupported{"a filter that map names"}
		}
		more := args[2:]
		apply = func(v Value) (Value, error) { return fn(r, append([]Value{v}, more...), kwargs) }
	}
	items, err := r.items(args[0])
	for i := range items {
		if err == nil {
			items[i], err = apply(items[i])
		}
	}
	return generator(items), err
}

// choose is select and its kin: keep those items for which a test holds, or by
// their truth when no test is named.
func choose(name string, keep, byAttribute bool) function {
	return func(r *render, args []Value, kwargs map[string]Value) (Value, error) {
		seq, args := args[0], args[1:]
		if !seq.IsTruthy() {
			return generator(nil), nil
		}
		get := func(v Value) (Value, error) { return v, nil }
		if byAttribute {
			if len(args) == 0 {
				return undefined, refuse("calls " + name + " without an attribute")
			}
			var err error
			if get, err = attrGetter(args[0], none, nil); err != nil {
				return undefined, err
			}
			args = args[1:]
		}
		test := func(v Value) (bool, error) { return v.IsTruthy(), nil }
		if len(args) > 0 {
			testName, err := want(name, args[0])
			if err != nil {
				return undefined, err
			}
			fn, ok := functions["test_"+testName]
			if !ok {
				return undefined, &Unsupported{"a test that " + name + " names"}
			}
			more := args[1:]
			test = func(v Value) (bool, error) {
				v, err := fn(r, append([]Value{v}, more...), kwargs)
				return v.IsTruthy(), err
			}
		}
		items, err := r.items(seq)
		if err != nil {
			return undefined, err
		}
		out := items[:0]
		for _, item := range items {
			v, err := get(item)
			if err != nil {
				return undefined, err
			}
			ok, err := test(v)
			if err != nil {
				return undefined, err
			}
			if ok == keep {
				out = append(out, item)
			}
		}
		return generator(out), nil
	}
}

// grouping reads the arguments of batch and slice: what to divide, by which number,
// and what fills the gaps, or none.
func (r *render) grouping(name string, sig signature, args []Value, kwargs map[string]Value) (items []Value, n int, fill Value, err error) {
	var room [2]Value
	a, err := sig.fill(name, args[1:], kwargs, room[:])
	if err != nil {
		return nil, 0, undefined, err
	}
	if kindOf(a[0]) != kInt || a[0].AsInt() < 1 || a[0].AsInt() > int64(r.meter.limits.Steps) {
		return nil, 0, undefined, &Unsupported{"this size of " + name}
	}
	items, err = r.items(args[0])
	return items, int(a[0].AsInt()), a[1], err
}

var batchArgs = signature{{"linecount", required}, {"fill_with", none}}

func filterBatch(r *render, args []Value, kwargs map[string]Value) (Value, error) {
	items, n, fill, err := r.grouping("batch", batchArgs, args, kwargs)
	if err != nil {
		return undefined, err
	}
	var out []Value
	for len(items) > 0 {
		group := append([]Value{}, items[:min(n, len(items))]...)
		items = items[len(group):]
		if !fill.IsNone() {
			if err := r.meter.step(n - len(group)); err != nil {
				return undefined, err
			}
			for len(group) < n {
				group = append(group, fill)
			}
		}
		out = append(out, List(group))
	}
	return generator(out), nil
}

var sliceArgs = signature{{"slices", required}, {"fill_with", none}}

func filterSlice(r *render, args []Value, kwargs map[string]Value) (Value, error) {
	items, n, fill, err := r.grouping("slice", sliceArgs, args, kwargs)
	if err != nil {
		return undefined, err
	}
	if err := r.meter.step(n); err != nil {
		return undefined, err
	}
	each, more := len(items)/n, len(items)%n
	var out []Value
	for i := range n {
		size := each
		if i < more {
			size++
		}
		group := append([]Value{}, items[:size]...)
		items = items[size:]
		if !fill.IsNone() && i >= more {
			group = append(group, fill)
		}
		out = append(out, List(group))
	}
	return generator(out), nil
}
