package jinja2

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"
)

// bombs are templates that would run without end, or out of memory or stack.
var bombs = map[string]string{
	"loop in loop":           `{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}`,
	"range":                  `{{ range(1000000000000)|length }}`,
	"ranges":                 `{% for a in range(99999) %}{% set b = range(99999) %}{% endfor %}`,
	"macro in itself":        `{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}`,
	"macros in each other":   `{% macro f() %}{{ g() }}{% endmacro %}{% macro g() %}{{ f() }}{% endmacro %}{{ f() }}`,
	"call in itself":         `{% macro f() %}{% call f() %}{{ caller() }}{% endcall %}{% endmacro %}{{ f() }}`,
	"caller in itself":       `{% macro f() %}{{ caller() }}{% endmacro %}{% macro g() %}{% call f() %}{{ g() }}{% endcall %}{% endmacro %}{{ g() }}`,
	"loop in itself":         `{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}`,
	"loop in itself, leaves": `{% for x in [1, 2] recursive %}{% if x == 2 %}{% continue %}{% endif %}{{ loop([1]) }}{% endfor %}`,
	"doubling":               `{% set n = namespace(s='xxxxxxxx') %}{% for i in range(60) %}{% set n.s = n.s ~ n.s %}{% endfor %}`,
	"adding":                 `{% set n = namespace(s='xxxxxxxx') %}{% for i in range(60) %}{% set n.s = n.s + n.s %}{% endfor %}`,
	"lists":                  `{% set n = namespace(s=[1]) %}{% for i in range(60) %}{% set n.s = n.s + n.s %}{% endfor %}`,
	"nested lists":           `{% set n = namespace(s=[1]) %}{% for i in range(60) %}{% set n.s = [n.s, n.s] %}{% endfor %}{{ n.s }}`,
	"nested lists as JSON":   `{% set n = namespace(s=[1]) %}{% for i in range(60) %}{% set n.s = [n.s, n.s] %}{% endfor %}{{ n.s|tojson }}`,
	"nested lists compared":  `{% set n = namespace(s=[1], t=[1]) %}{% for i in range(60) %}{% set n.s = [n.s, n.s] %}{% set n.t = [n.t, n.t] %}{% endfor %}{{ n.s == n.t }}{{ n.s < n.t }}`,
	"deep list":              `{% set n = namespace(s=[]) %}{% for i in range(99999) %}{% set n.s = [n.s] %}{% endfor %}{{ n.s }}`,
	"deep list compared":     `{% set n = namespace(s=[], t=[]) %}{% for i in range(99999) %}{% set n.s = [n.s] %}{% set n.t = [n.t] %}{% endfor %}{{ n.s == n.t }}`,
	"deep dict as JSON":      `{% set n = namespace(s={}) %}{% for i in range(99999) %}{% set n.s = {'a': n.s} %}{% endfor %}{{ n.s|tojson(indent=4) }}`,
	"repeated text":          `{{ 'xxxxxxxxxx' * 1000000000 }}`,
	"repeated list":          `{{ ([1, 2] * 10000000000)|length }}`,
	"repeated too often":     `{{ 'x' * 9223372036854775807 }}`,
	"center":                 `{{ 'x'.center(9000000000) }}`,
	"ljust":                  `{{ 'x'.ljust(9000000000, 'é') }}`,
	"zfill":                  `{{ 'x'.zfill(9000000000) }}`,
	"indent":                 `{{ 'x\ny'|indent(9000000000) }}`,
	"JSON indent":            `{{ [1]|tojson(indent=9000000000) }}`,
	"JSON indents":           `{% set n = namespace(s=[1]) %}{% for i in range(400) %}{% set n.s = [n.s] %}{% endfor %}{{ n.s|tojson(indent=' ' * 1000000) }}`,
	"format width":           `{{ '%9000000000d' % 1 }}`,
	"format precision":       `{{ '%.9000000000f' % 1 }}`,
	"format padding":         `{{ '%99999999s' % 'x' }}`,
	"replace":                `{% set s = 'x' * 10000 %}{{ s.replace('x', s).replace('x', s) }}`,
	"replace nothing":        `{% set s = 'x' * 10000000 %}{{ s|replace('', s) }}`,
	"join":                   `{% set s = 'x' * 1000000 %}{{ range(99999)|join(s) }}`,
	"batch":                  `{{ [1]|batch(9000000000, 0)|list }}`,
	"slice":                  `{{ [1]|slice(9000000000, 0)|list }}`,
	"power":                  `{{ 9 ** 999999999 }}`,
	"printing":               `{% set s = 'x' * 1000000 %}{% for i in range(99999) %}{{ s }}{% endfor %}`,
	"text":                   `{% for i in range(99999) %}{% for j in range(99999) %}` + strings.Repeat("x", 10000) + `{% endfor %}{% endfor %}`,
	"text in a block":        `{% set y %}{% for i in range(99999) %}{% for j in range(99999) %}` + strings.Repeat("x", 10000) + `{% endfor %}{% endfor %}{% endset %}`,
	"split":                  `{% set s = 'x ' * 10000000 %}{% for i in range(99999) %}{% set t = s.split(' ') %}{% endfor %}`,
	"sort":                   `{% for i in range(99999) %}{% set t = range(99999)|sort %}{% endfor %}`,
	"sort of long text":      `{% set t = (['x' * 900000] * 1000)|sort %}`,
	"sort by case":           `{% set s = 'x' * 300000 %}{% set t = ([s, s ~ ''] * 500)|sort(case_sensitive=true) %}`,
	"sorted dicts":           `{% set d = {'x' * 300000: 1} %}{% for i in range(1000) %}{% set t = d|dictsort %}{% endfor %}`,
	"unique long text":       `{% set t = (['x' * 900000] * 1000)|unique(case_sensitive=true)|list %}`,
	"longest text":           `{% set t = (['x' * 900000] * 1000)|max %}`,
	"long text in a list":    `{% set s = 'x' * 300000 %}{% set t = 'x' * 299999 ~ 'y' %}{% set b = t in [s] * 1000 %}`,
	"fields":                 `{% for i in range(99999) %}{% set t = ('x ' * 1000000)|wordcount %}{% endfor %}`,
	"trim":                   `{% set s = ' ' * 60000000 %}{% for i in range(99999) %}{% for j in range(99999) %}{% set t = s|trim %}{% endfor %}{% endfor %}`,
	"length":                 `{% set s = 'é' * 30000000 %}{% for i in range(99999) %}{% for j in range(99999) %}{% set t = s|length %}{% endfor %}{% endfor %}`,
	"characters":             `{% set s = 'é' * 30000000 %}{% for i in range(99999) %}{% for j in range(99999) %}{% set t = s[-1] %}{% endfor %}{% endfor %}`,
	"upper":                  `{% set s = 'é' * 3000000 %}{% for i in range(99999) %}{% set t = s|upper %}{% endfor %}`,
	"cycle":                  `{% set n = namespace(a=1) %}{% set n.a = n %}{{ n.a }}`,
	"list in namespace":      `{% set n = namespace(a=1) %}{% set n.a = [n] %}{{ n.a }}`,
	"brackets":               `{{ ` + strings.Repeat("(", 100000) + `1` + strings.Repeat(")", 100000) + ` }}`,
	"lists of lists":         `{{ ` + strings.Repeat("[", 100000) + strings.Repeat("]", 100000) + ` }}`,
	"nots":                   `{{ ` + strings.Repeat("not ", 50000) + `1 }}`,
	"signs":                  `{{ ` + strings.Repeat("-", 100000) + `1 }}`,
	"powers":                 `{{ 1` + strings.Repeat("**1", 50000) + ` }}`,
	"differences":            `{{ 1` + strings.Repeat("-1", 50000) + ` }}`,
	"ors":                    `{{ 0` + strings.Repeat(" or 0", 40000) + ` }}`,
	"attributes":             `{{ a` + strings.Repeat(".a", 100000) + ` }}`,
	"filters":                `{{ 1` + strings.Repeat("|d", 100000) + ` }}`,
	"elses":                  `{{ ` + strings.Repeat("0 if 0 else ", 20000) + `1 }}`,
	"ifs":                    strings.Repeat("{% if 1 %}", 20000) + strings.Repeat("{% endif %}", 10000),
	"an open tag":            strings.Repeat("{{", 100000),
	"an open comment":        strings.Repeat("{#", 100000),
	"raw":                    strings.Repeat("{% raw %}{%", 20000),
	"a large source":         strings.Repeat("x", 300<<10),
}

// small are limits that a test reaches soon.
var small = Limits{Output: 1 << 20, Steps: 200_000, Depth: 200}

// TestBombs: each ends as an error, at the default limits too.
func TestBombs(t *testing.T) {
	for name, source := range bombs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tpl, err := Compile(source)
			if err != nil {
				return
			}
			out, err := tpl.Render(context.Background(), Input{Limits: small})
			if err == nil {
				t.Errorf("renders to %d bytes", len(out.Text))
			}
			if len(out.Text) > 0 {
				t.Error("an error and a text")
			}
		})
	}
}

// TestHarmless: limits are not in the way of what is long and ends.
func TestHarmless(t *testing.T) {
	for name, tc := range map[string]struct{ source, want string }{
		"depth is given back": {`{% macro f() %}x{% endmacro %}{% for i in range(1000) %}{{ f() }}{% endfor %}`, strings.Repeat("x", 1000)},
		"and by break":        {`{% for x in range(2000) %}{% for y in [1, 2] recursive %}{% if y == 1 %}{% break %}{% endif %}{% endfor %}{% endfor %}y`, "y"},
		"a long chat":         {`{% for x in range(50000) %}` + strings.Repeat("y", 100) + `{% endfor %}`, strings.Repeat("y", 5_000_000)},
		"recursion":           {`{% macro f(n) %}{{ n }}{% if n %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(9) }}`, "9876543210"},
		"a recursive loop":    {`{% for x in [[1, [2]], [3]] recursive %}{% if x is iterable %}({{ loop(x) }}){% else %}{{ x }}{% endif %}{% endfor %}`, "(1(2))(3)"},
	} {
		tpl, err := Compile(tc.source)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		out, err := tpl.Render(context.Background(), Input{})
		if err != nil || out.Text != tc.want {
			t.Errorf("%s: %.80q, %v", name, out.Text, err)
		}
	}
}

// TestCancel: a render stops when its context does.
func TestCancel(t *testing.T) {
	tpl, err := Compile(`{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}`)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(time.Millisecond, cancel)
	_, err = tpl.Render(ctx, Input{Limits: Limits{Output: 1 << 40, Steps: 1 << 50, Depth: 10}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("returned %v", err)
	}
	if _, err := tpl.Render(ctx, Input{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a render that begins too late returned %v", err)
	}
}

// TestConcurrent: one template, many goroutines, some of whose renders fail.
func TestConcurrent(t *testing.T) {
	tpl, err := Compile(`{% set ns = namespace(s='') %}{% for m in messages %}{% set ns.s = ns.s ~ m %}{% endfor %}{{ ns.s }}{% if bad %}{{ raise_exception(bad) }}{% endif %}`)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			word := strings.Repeat(string(rune('a'+g)), 3)
			for i := range 50 {
				vars := map[string]Value{"messages": List([]Value{String(word), Int(int64(i))})}
				if i%7 == 0 {
					vars["bad"] = String(word)
				}
				out, err := tpl.Render(context.Background(), Input{Vars: vars})
				refused := new(Refused)
				if i%7 == 0 && (!errors.As(err, &refused) || refused.Message != word) {
					t.Errorf("returned %v", err)
				}
				if i%7 != 0 && (err != nil || !strings.HasPrefix(out.Text, word)) {
					t.Errorf("%q, %v", out.Text, err)
				}
			}
		})
	}
	wg.Wait()
}

// TestPrivate: no error's text quotes what a request brought.
func TestPrivate(t *testing.T) {
	for _, source := range []string{`{{ raise_exception('x' ~ s) }}`, `{{ s() }}`, `{{ s.foo() }}`, `{{ s + 1 }}`, `{{ s|round }}`, `{% for a, b in s %}{% endfor %}`,
		`{{ d.k() }}`, `{{ d[s].x }}`, `{% set s.x = 1 %}`, `{{ range(s) }}`, `{{ '%d' % s }}`, `{{ [1]|map(s)|list }}`} {
		tpl, err := Compile(source)
		if err != nil {
			t.Fatal(source, err)
		}
		vars := map[string]Value{"s": String("SECRET"), "d": Dict()}
		Put(vars["d"], "k", String("SECRET"))
		_, err = tpl.Render(context.Background(), Input{Vars: vars, Now: time.Unix(1, 0)})
		if err == nil || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%s: %v", source, err)
		}
	}
}
