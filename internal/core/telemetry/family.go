package telemetry

import (
	"math"
	"slices"
	"strconv"
)

// family is one metric: its series in page order, the last of equal label sets
// only. The methods take a nil family for one that the page lacks.
type family struct {
	name   string // as written on the page
	series []series
	// at finds series by their set of labels, once there are too many to look
	// through: vLLM's LoRA gauge never drops one.
	at map[uint64]int
}

// scanned is the number of series up to which looking through is quicker than a
// map and allocates nothing (BenchmarkParse; engines have one series a rank).
const scanned = 16

// add appends a series, or replaces the one that has its labels.
func (f *family) add(s series) {
	if i, ok := f.index(s); ok {
		f.series[i] = s
		return
	}
	f.series = append(f.series, s)
	switch n := len(f.series); {
	case f.at != nil:
		f.at[s.set] = n - 1
	case n > scanned:
		f.at = make(map[uint64]int, 2*n)
		for i := range f.series {
			f.at[f.series[i].set] = i
		}
	}
}

func (f *family) index(s series) (int, bool) {
	if f.at != nil {
		i, ok := f.at[s.set]
		return i, ok && sameLabels(f.series[i], s)
	}
	for i := range f.series {
		if sameLabels(f.series[i], s) {
			return i, true
		}
	}
	return 0, false
}

// first returns the first of the named families that is on the page, or nil.
func (p page) first(names ...string) *family {
	for _, n := range names {
		if f := p[n]; f != nil {
			return f
		}
	}
	return nil
}

// where keeps the series for which keep holds. A nil family stays nil.
func (f *family) where(keep func(series) bool) *family {
	if f == nil {
		return nil
	}
	out := &family{name: f.name}
	for _, s := range f.series {
		if keep(s) {
			out.series = append(out.series, s)
		}
	}
	return out
}

// is keeps the series whose label has this value.
func (f *family) is(label, value string) *family {
	return f.where(func(s series) bool { return s.label(label) == value })
}

// any says whether cond holds for one of the series.
func (f *family) any(cond func(series) bool) bool {
	return f != nil && slices.ContainsFunc(f.series, cond)
}

// ofRank keeps the series of one data-parallel rank; those without the label
// describe all ranks. An empty rank keeps everything.
func ofRank(f *family, label, rank string) *family {
	if rank == "" {
		return f
	}
	return f.where(func(s series) bool {
		l := s.label(label)
		return l == "" || l == rank
	})
}

// sum adds the series up and max takes the greatest. Both are unknown when
// there is no series or one of them is no number: leaving that one out would
// show less load than there is.
func (f *family) sum() Value { return f.fold(func(a, b float64) float64 { return a + b }) }
func (f *family) max() Value { return f.fold(math.Max) }

func (f *family) fold(op func(a, b float64) float64) Value {
	if f == nil || len(f.series) == 0 {
		return Value{}
	}
	v := Value{Known: true, Metric: f.name}
	for i, s := range f.series {
		if !usable(s.value) {
			return Value{}
		}
		if i == 0 {
			v.V = s.value
		} else {
			v.V = op(v.V, s.value)
		}
	}
	return v
}

// usable says whether x can be a count or a share: engines print NaN, infinity
// and -1 for "not available".
func usable(x float64) bool { return x >= 0 && !math.IsInf(x, 0) }

// either returns a when it is known, else b; positive turns a zero size into an
// unknown one; ratio divides, where both are known and the whole is not 0.
func either(a, b Value) Value {
	if a.Known {
		return a
	}
	return b
}

func positive(v Value) Value {
	if v.V > 0 {
		return v
	}
	return Value{}
}

func ratio(part, whole Value) Value {
	if !part.Known || !whole.Known || whole.V == 0 {
		return Value{}
	}
	return Value{V: part.V / whole.V, Known: true, Metric: part.Metric}
}

// labelNumber reads a label as a positive number, as info metrics carry them.
func labelNumber(f *family, label string) Value {
	if f == nil {
		return Value{}
	}
	for _, s := range f.series {
		if x, err := strconv.ParseFloat(s.label(label), 64); err == nil && x > 0 && usable(x) {
			return Value{V: x, Known: true, Metric: f.name}
		}
	}
	return Value{}
}
