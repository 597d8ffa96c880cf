package tap

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/eppctl/eppctl/internal/core/spelling"
	"github.com/eppctl/eppctl/internal/inspect"
)

// Expectation is a comparison with a number of the account: "events>0", "gaps=0".
type Expectation struct {
	text, field string
	value       float64
	holds       func(a, b float64) bool
}

func (x Expectation) String() string { return x.text }

// operators, the longer ones first.
var operators = []struct {
	text  string
	holds func(a, b float64) bool
}{
	{">=", func(a, b float64) bool { return a >= b }},
	{"<=", func(a, b float64) bool { return a <= b }},
	{"!=", func(a, b float64) bool { return a != b }},
	{"==", func(a, b float64) bool { return a == b }},
	{">", func(a, b float64) bool { return a > b }},
	{"<", func(a, b float64) bool { return a < b }},
	{"=", func(a, b float64) bool { return a == b }},
}

// Expect reads an expectation.
func Expect(text string) (Expectation, error) {
	for _, op := range operators {
		field, number, found := strings.Cut(text, op.text)
		if !found {
			continue
		}
		x := Expectation{text: text, field: strings.TrimSpace(field), holds: op.holds}
		if !slices.Contains(Countables(), x.field) {
			hint := spelling.Guess(x.field, Countables())
			if hint == "" {
				hint = "--help lists them"
			}
			return x, fmt.Errorf("no number of the account is called %q; %s", x.field, hint)
		}
		var err error
		if x.value, err = strconv.ParseFloat(strings.TrimSpace(number), 64); err != nil {
			return x, fmt.Errorf("found %q; expected a number behind %s", number, op.text)
		}
		return x, nil
	}
	return Expectation{}, fmt.Errorf("found %q; expected a comparison such as events>0 or gaps=0", text)
}

// Countables are the numbers of the account that can be expected.
func Countables() (names []string) {
	for name := range newAccount().numbers() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// numbers are the account's own, by their names in JSON.
func (a *Account) numbers() map[string]float64 {
	b, err := json.Marshal(a)
	if err != nil {
		panic(err) // an account of numbers and texts always marshals
	}
	var all map[string]any
	if err := json.Unmarshal(b, &all); err != nil {
		panic(err)
	}
	numbers := map[string]float64{}
	for name, v := range all {
		if n, ok := v.(float64); ok {
			numbers[name] = n
		}
	}
	return numbers
}

// unmet is the error about expectations that do not hold.
func (a *Account) unmet(list []Expectation) error {
	var missed []string
	numbers := a.numbers()
	for _, x := range list {
		if n := numbers[x.field]; !x.holds(n, x.value) {
			missed = append(missed, fmt.Sprintf("%s (found %s)", x, strconv.FormatFloat(n, 'f', -1, 64)))
		}
	}
	if len(missed) == 0 {
		return nil
	}
	return &inspect.Error{
		Kind: inspect.Negative, Code: "E_EXPECT", What: "not as expected: " + strings.Join(missed, "; "), Hint: "the account above has all numbers; matched alone is behind the filter",
	}
}
