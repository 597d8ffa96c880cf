package jinja2

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
)

// TestScalarsAgainstPython: floats of every size, at the borders of their notations
// too, and every character that JSON or a repr may escape, printed in all ways.
func TestScalarsAgainstPython(t *testing.T) {
	p := startPython(t)
	r := rand.New(rand.NewPCG(3, 16))
	var floats []json.RawMessage
	add := func(list ...float64) {
		for _, x := range list {
			floats = append(floats, strconv.AppendFloat(nil, x, 'e', -1, 64)) // with an exponent: no int
		}
	}
	for e := -324; e <= 308; e += 4 {
		add(math.Pow10(e))
	}
	for e := -6; e <= 23; e++ {
		x := math.Pow10(e)
		add(x, math.Nextafter(x, 0), math.Nextafter(x, math.Inf(1)), -3*x)
	}
	for range 300 {
		if x := math.Float64frombits(r.Uint64()); !math.IsNaN(x) && !math.IsInf(x, 0) {
			add(x, float64(float32(r.Float64()*1e6)))
		}
	}
	var chars []string
	for c := rune(0); c < 0x2070; c++ {
		if c < 0x370 || c >= 0x2000 { // nothing was assigned there for long: every Python knows the same
			chars = append(chars, string(c))
		}
	}
	for _, c := range []rune{0xac00, 0xd7ff, 0xe000, 0xfeff, 0xfffd, 0xffff, 0x10000, 0x1f600, 0xe0001, 0x10ffff} {
		chars = append(chars, "'"+string(c)+`"`)
	}
	vars, err := json.Marshal(map[string]any{"floats": floats, "chars": chars})
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range []string{
		"{% for x in floats %}{{ x }} {{ [x] }} {{ x|tojson }}\n{% endfor %}",
		"{% for c in chars %}{{ c|tojson }}{{ c|tojson(ensure_ascii=true) }}\n{% endfor %}",
		"{% for c in chars %}{{ [c] }}\n{% endfor %}",
	} {
		if v, text := against(t, p, source, vars); v != same {
			t.Errorf("%s: %.2000s", source, text)
		}
	}
}
