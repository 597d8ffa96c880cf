package pick

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/eppctl/eppctl/internal/core/spelling"
)

// Weight is one constant of a policy, by the key that the section weights of the
// configuration has for it: "alpha", "breaker.depth". A switch is 0 or 1.
type Weight struct {
	Key   string
	Value float64
}

// WeightError is about a text that is no weight.
type WeightError struct{ Text, Why string }

func (e *WeightError) Error() string { return fmt.Sprintf("%q: %s", e.Text, e.Why) }

// termWeights are the constants that a term is multiplied with, by its name, so that
// an operator may say what the table says.
var termWeights = func() map[string]string {
	p, keys := new(Policy), map[string]string{}
	for key, field := range weightFields(p) {
		for _, t := range terms {
			if t.factor != nil && field.Addr().Interface() == any(t.factor(p)) {
				keys[t.name] = key
			}
		}
	}
	return keys
}()

// ParseWeight reads TERM=VALUE or KEY=VALUE, the key also as the configuration as a
// whole has it: weights.alpha. The value's range is With's to check.
func ParseWeight(text string) (Weight, error) {
	key, value, ok := strings.Cut(text, "=")
	if !ok || key == "" || value == "" {
		return Weight{}, &WeightError{text, "want KEY=VALUE, such as kv=2 or breaker.depth=16"}
	}
	key = strings.TrimPrefix(key, "weights.")
	if t := termByName(key); t != nil && t.factor == nil {
		return Weight{}, &WeightError{text, "the term " + key + " has no weight: " + t.setBy}
	}
	if own, is := termWeights[key]; is {
		key = own
	}
	field, is := weightFields(new(Policy))[key]
	if !is {
		return Weight{}, &WeightError{text, unknownWeight(key)}
	}
	v, want := parseConstant(field.Kind(), value)
	if want != "" {
		return Weight{}, &WeightError{text, "want " + want}
	}
	return Weight{key, v}, nil
}

// unknownWeight says which one was meant, or where they are told of: of all of them
// the message would be a page.
func unknownWeight(key string) string {
	hint := spelling.Guess(key, WeightNames())
	if hint == "" {
		hint = "docs/config.md lists them, and so does --help"
	}
	return fmt.Sprintf("no weight is called %q; %s", key, hint)
}

// parseConstant reads a value of a kind; want says what it should have been.
func parseConstant(kind reflect.Kind, text string) (v float64, want string) {
	switch kind {
	case reflect.Bool:
		on, err := strconv.ParseBool(text)
		switch {
		case err != nil:
			return 0, "true or false"
		case on:
			return 1, ""
		}
		return 0, ""
	case reflect.Int:
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return 0, "a whole number"
		}
		return float64(n), ""
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, "a number"
	}
	return v, ""
}

// WeightKeys lists every key of a policy, sorted.
func WeightKeys() []string { return slices.Sorted(maps.Keys(weightFields(new(Policy)))) }

// WeightNames lists what ParseWeight takes: the keys, and the terms that have one.
func WeightNames() []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(WeightKeys(), slices.Collect(maps.Keys(termWeights))))))
}

// With returns a validated copy of the policy with some constants changed. One of
// the calibration changes for all models, those with numbers of their own too.
func (p *Policy) With(changes ...Weight) (*Policy, error) {
	q := *p
	q.Models = maps.Clone(p.Models)
	for _, w := range changes {
		set(reflect.ValueOf(&q).Elem(), w)
		for name, c := range q.Models {
			set(reflect.ValueOf(&c).Elem(), w)
			q.Models[name] = c
		}
	}
	if err := q.Validate(); err != nil {
		return nil, err
	}
	return &q, nil
}

// Weight is the present value of a key; false when there is none of that name.
func (p *Policy) Weight(key string) (float64, bool) {
	f := constant(reflect.ValueOf(p).Elem(), key)
	if !f.IsValid() {
		return 0, false
	}
	switch f.Kind() {
	case reflect.Bool:
		if f.Bool() {
			return 1, true
		}
		return 0, true
	case reflect.Int:
		return float64(f.Int()), true
	}
	return f.Float(), true
}

// set changes a constant of a policy or a calibration, if it has it.
func set(of reflect.Value, w Weight) {
	f := constant(of, w.Key)
	if !f.IsValid() {
		return
	}
	switch f.Kind() {
	case reflect.Bool:
		f.SetBool(w.Value != 0)
	case reflect.Int:
		f.SetInt(int64(w.Value))
	default:
		f.SetFloat(w.Value)
	}
}

func weightFields(p *Policy) map[string]reflect.Value {
	m := map[string]reflect.Value{}
	collect(reflect.ValueOf(p).Elem(), "", m)
	return m
}

// constant finds one by its key; it is not valid when there is none.
func constant(v reflect.Value, key string) reflect.Value {
	first, rest, nested := strings.Cut(key, ".")
	for i := range v.NumField() {
		f := v.Field(i)
		name, option, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
		switch {
		case option == "inline":
			if c := constant(f, key); c.IsValid() {
				return c
			}
		case name != first || name == "-":
		case f.Kind() == reflect.Struct && nested:
			return constant(f, rest)
		case f.Kind() != reflect.Struct && !nested:
			return f
		}
	}
	return reflect.Value{}
}

// collect finds all constants by the keys that the configuration has for them.
func collect(v reflect.Value, prefix string, m map[string]reflect.Value) {
	for i := range v.NumField() {
		f := v.Field(i)
		key, option, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
		switch {
		case key == "-":
		case f.Kind() == reflect.Struct && option == "inline":
			collect(f, prefix, m)
		case f.Kind() == reflect.Struct:
			collect(f, prefix+key+".", m)
		default:
			m[prefix+key] = f
		}
	}
}
