package telemetry

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"
)

// series is one sample line. Its labels are a piece of the page: nothing may
// keep a series beyond the page, and what is kept is copied out as a string.
type series struct {
	labels []byte // the text between the braces, well-formed; nil = none
	set    uint64 // equal for equal sets of labels, whatever their order
	value  float64
}

// maxLabels bounds the labels of one line: names are compared with each other.
// The longest line of the captures, vllm:cache_config_info of 0.32.0, has 37.
const maxLabels = 256

var errQuote = errors.New("a quote that is never closed")

// lineName cuts a sample line behind its metric name; nil for anything else.
// The whole name counts: num_requests_waiting is not
// num_requests_waiting_by_reason. braced is set for {"name",label="x"} 1.
func lineName(line []byte) (name, rest []byte, braced bool) {
	line = skipBlanks(line)
	if len(line) == 0 || line[0] == '#' {
		return nil, nil, false
	}
	if line[0] == '{' {
		if in := skipBlanks(line[1:]); len(in) > 0 && in[0] == '"' {
			name, rest, _ = bytes.Cut(in[1:], []byte(`"`))
			return name, rest, true
		}
		return nil, nil, false // the form with the name behind a label is nobody's
	}
	for i, c := range line {
		if c == '{' || c == ' ' || c == '\t' {
			return line[:i], line[i:], false
		}
	}
	return nil, nil, false
}

// parseSeries reads what follows the name in a line without its end: labels,
// value, and a timestamp that is of no use here. It takes what expfmt takes; a
// timestamp that is no integer, or an exemplar, is an error.
func parseSeries(rest []byte, braced bool) (s series, err error) {
	rest = skipBlanks(rest)
	switch {
	case len(rest) == 0:
		return s, errors.New("no value")
	case braced && rest[0] != ',' && rest[0] != '}':
		return s, errors.New("no comma behind the name in braces")
	case braced && rest[0] == ',', !braced && rest[0] == '{':
		rest = rest[1:]
		fallthrough
	case braced:
		if s.labels, s.set, rest, err = cutLabels(rest); err != nil {
			return s, err
		}
	}
	value, stamp := cutBlank(skipBlanks(rest))
	if s.value, err = parseValue(value); err != nil {
		return s, err
	}
	if stamp == nil {
		return s, nil
	}
	if _, err := strconv.ParseInt(string(skipBlanks(stamp)), 10, 64); err != nil {
		return s, fmt.Errorf("%.40q behind the value is no timestamp", stamp)
	}
	return s, nil
}

func parseValue(b []byte) (float64, error) {
	v, err := strconv.ParseFloat(string(b), 64)
	if err != nil || bytes.ContainsAny(b, "pP_") { // Go's own forms of a number
		return 0, fmt.Errorf("%.40q is no value", b)
	}
	return v, nil
}

// cutLabels checks the labels up to the closing brace and cuts behind it.
func cutLabels(text []byte) (labels []byte, set uint64, rest []byte, err error) {
	var names [maxLabels]uint64 // their hashes: comparing the text is quadratic work
	rest = text
	for n := 0; ; n++ {
		if rest = skipBlanks(rest); len(rest) > 0 && rest[0] == '}' {
			return text[:len(text)-len(rest)], set, rest[1:], nil
		}
		seen := text[:len(text)-len(rest)]
		var name, value []byte
		if name, value, rest, err = cutLabel(rest); err != nil {
			return nil, 0, nil, err
		}
		hash := fnv1a(fnvBasis, name)
		switch {
		case n == maxLabels:
			return nil, 0, nil, fmt.Errorf("more than %d labels", maxLabels)
		case len(name) == 0 || string(name) == "__name__" || !utf8.Valid(name):
			return nil, 0, nil, fmt.Errorf("label name %.40q", name)
		case !utf8.Valid(value):
			return nil, 0, nil, fmt.Errorf("value %.40q of label %.40q", value, name)
		case slices.Contains(names[:n], hash) && find(seen, name) != nil:
			return nil, 0, nil, fmt.Errorf("label %.40q twice", name)
		}
		names[n] = hash
		set += fnv1a(hash^0xff, value) // a sum: order decides nothing
		switch rest = skipBlanks(rest); {
		case len(rest) > 0 && rest[0] == ',':
			rest = rest[1:]
		case len(rest) == 0 || rest[0] != '}':
			return nil, 0, nil, fmt.Errorf("no comma or brace behind label %.40q", name)
		}
	}
}

// cutLabel cuts the first name="value" off. Both come back as written: only
// newline, quote and backslash are escaped, each in one way, so that equal text
// is equal in this form too.
func cutLabel(b []byte) (name, value, rest []byte, err error) {
	if len(b) > 0 && b[0] == '"' {
		if name, rest, err = cutQuoted(b); err != nil {
			return nil, nil, nil, err
		}
	} else {
		i := 0
		for i < len(b) && nameByte(b[i], i) {
			i++
		}
		name, rest = b[:i], b[i:]
	}
	if rest = skipBlanks(rest); len(rest) == 0 || rest[0] != '=' {
		return nil, nil, nil, fmt.Errorf("no = behind label name %.40q", name)
	}
	value, rest, err = cutQuoted(skipBlanks(rest[1:]))
	return name, value, rest, err
}

func nameByte(c byte, at int) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || at > 0 && c >= '0' && c <= '9'
}

// cutQuoted cuts a quoted string off and returns its inside as written.
func cutQuoted(b []byte) (inside, rest []byte, err error) {
	if len(b) == 0 || b[0] != '"' {
		return nil, nil, errors.New("no quote where a label's value begins")
	}
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '"':
			return b[1:i], b[i+1:], nil
		case '\\':
			if i++; i == len(b) || b[i] != '\\' && b[i] != '"' && b[i] != 'n' {
				return nil, nil, errors.New("unknown escape in quotes")
			}
		}
	}
	return nil, nil, errQuote
}

// find returns the value of a label as written, nil when absent.
func find(labels, name []byte) []byte {
	for rest := skipBlanks(labels); len(rest) > 0; {
		n, v, after, err := cutLabel(rest)
		if err != nil {
			return nil
		}
		if bytes.Equal(n, name) {
			return v
		}
		rest = bytes.TrimLeft(after, " \t,")
	}
	return nil
}

// label returns a label's value; "" when absent, which Prometheus holds equal.
func (s series) label(name string) string {
	v := find(s.labels, []byte(name))
	if bytes.IndexByte(v, '\\') < 0 {
		return string(v)
	}
	return unescape(v)
}

func unescape(written []byte) string {
	out := make([]byte, 0, len(written))
	for i := 0; i < len(written); i++ {
		c := written[i]
		if c == '\\' {
			if i++; written[i] == 'n' {
				c = '\n'
			} else {
				c = written[i]
			}
		}
		out = append(out, c)
	}
	return string(out)
}

// sameLabels says whether two series of one family have equal labels.
func sameLabels(a, b series) bool {
	if a.set != b.set {
		return false
	}
	if bytes.Equal(a.labels, b.labels) {
		return true
	}
	n := 0
	for rest := skipBlanks(a.labels); len(rest) > 0; n++ {
		name, value, after, _ := cutLabel(rest)
		if v := find(b.labels, name); v == nil || !bytes.Equal(v, value) {
			return false
		}
		rest = bytes.TrimLeft(after, " \t,")
	}
	for rest := skipBlanks(b.labels); len(rest) > 0; n-- {
		_, _, after, _ := cutLabel(rest)
		rest = bytes.TrimLeft(after, " \t,")
	}
	return n == 0
}

// fnvBasis and fnv1a are the 64-bit FNV-1a hash, which needs no allocation and
// gives the same sets on every run.
const fnvBasis = 14695981039346656037

func fnv1a(h uint64, b []byte) uint64 {
	for _, c := range b {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return h
}

func skipBlanks(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	return b
}

// cutBlank cuts at the first blank; after is nil when there is none.
func cutBlank(b []byte) (before, after []byte) {
	if i := bytes.IndexAny(b, " \t"); i >= 0 {
		return b[:i], b[i:]
	}
	return b, nil
}
