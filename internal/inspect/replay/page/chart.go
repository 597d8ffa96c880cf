package page

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"
)

// Chart is a line per policy over load, seconds on a logarithmic scale: policies
// differ by factors of ten past their limits and by percents below.
type chart struct {
	Title  string
	Width  int
	Height int
	XTicks []tick
	YTicks []tick
	Lines  []line
	Limit  *limit
}

type tick struct {
	At    float64
	Label string
}

type line struct {
	Name   string
	Color  string
	Dash   string
	Path   template.HTMLAttr
	Points []point
	EndY   float64 // of the last point
	LabelY float64 // of the name beside it
}

type point struct {
	X, Y float64
	Text string
}

// limit is a horizontal mark.
type limit struct {
	Y     float64
	Label string
}

// The plot lies within the picture by these margins; the right one holds the names.
const (
	width, height            = 860, 420
	left, right, top, bottom = 62, 150, 30, 44
)

// colors are of Okabe and Ito, which people who see colours differently can tell
// apart; dashes go on where they end.
var (
	colors = []string{"#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F", "#B8A800"}
	dashes = []string{"", "6 3", "2 3", "8 3 2 3"}
)

// series picks a value of each run.
func (r *Report) chart(title string, target float64, value func(*Run) float64) chart {
	c := chart{Title: title, Width: width, Height: height}
	x, y := r.scales(value)
	for _, t := range r.speeds() {
		c.XTicks = append(c.XTicks, tick{x.at(t), fmt.Sprintf("%g", t)})
	}
	for _, t := range y.ticks() {
		c.YTicks = append(c.YTicks, tick{y.at(t), seconds(t)})
	}
	if target > 0 && y.hi > target {
		c.Limit = &limit{y.at(target), "at most " + seconds(target)}
	}
	for i, name := range r.policies() {
		l := line{Name: name, Color: colors[i%len(colors)], Dash: dashes[i/len(colors)%len(dashes)]}
		var path strings.Builder
		for k := range r.Runs {
			run := &r.Runs[k]
			if run.Policy != name {
				continue
			}
			p := point{x.at(run.Speed), y.at(value(run)), fmt.Sprintf("%s at speed %g: %s", name, run.Speed, seconds(value(run)))}
			l.Points = append(l.Points, p)
		}
		slices.SortStableFunc(l.Points, func(a, b point) int { return cmp.Compare(a.X, b.X) })
		for k, p := range l.Points {
			fmt.Fprintf(&path, "%c%.1f %.1f", "ML"[min(k, 1)], p.X, p.Y)
		}
		l.Path = template.HTMLAttr(fmt.Sprintf("d=%q", path.String())) // numbers alone
		l.EndY = l.Points[len(l.Points)-1].Y
		l.LabelY = l.EndY
		c.Lines = append(c.Lines, l)
	}
	spread(c.Lines)
	return c
}

func (r *Report) speeds() (list []float64) {
	for i := range r.Runs {
		list = append(list, r.Runs[i].Speed)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// scale maps values onto the picture.
type scale struct {
	lo, hi   float64
	from, to float64 // pixels
	log      bool
}

func (s scale) at(v float64) float64 {
	a, b := s.lo, s.hi
	if s.log {
		v, a, b = math.Log(max(v, s.lo)), math.Log(a), math.Log(b)
	}
	if b <= a {
		return (s.from + s.to) / 2
	}
	return s.from + (v-a)/(b-a)*(s.to-s.from)
}

func (r *Report) scales(value func(*Run) float64) (x, y scale) {
	speeds := r.speeds()
	x = scale{lo: speeds[0], hi: speeds[len(speeds)-1], from: left, to: width - right}
	lo, hi := math.Inf(1), 0.0
	for i := range r.Runs {
		v := max(value(&r.Runs[i]), 1e-3)
		lo, hi = min(lo, v), max(hi, v)
	}
	return x, scale{lo: lo / 1.2, hi: hi * 1.2, from: height - bottom, to: top, log: true}
}

// tickGap is how far apart ticks must stand to be an axis and no ruler.
const tickGap = 24

// rounds are the digits that ticks begin with, the finest first. Each divides a power
// of ten about evenly on a logarithmic scale.
var rounds = [][]float64{
	{1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.8, 2, 2.2, 2.5, 2.8, 3, 3.5, 4, 4.5, 5, 5.5, 6, 7, 8, 9},
	{1, 1.25, 1.5, 2, 2.5, 3, 4, 5, 6, 8},
	{1, 2, 5},
	{1},
}

// ticks are round numbers of a logarithmic scale: as many as there is room for.
func (s scale) ticks() (list []float64) {
	for _, digits := range rounds {
		if list = s.beginning(digits); s.apart(list) {
			break
		}
	}
	return list
}

func (s scale) apart(list []float64) bool {
	for i := 1; i < len(list); i++ {
		if math.Abs(s.at(list[i])-s.at(list[i-1])) < tickGap {
			return false
		}
	}
	return true
}

// beginning lists the numbers of the scale that begin with some digits.
func (s scale) beginning(digits []float64) (list []float64) {
	for e := math.Floor(math.Log10(s.lo)); e <= math.Ceil(math.Log10(s.hi)); e++ {
		for _, m := range digits {
			if v := m * math.Pow(10, e); v >= s.lo && v <= s.hi {
				list = append(list, v)
			}
		}
	}
	return list
}

// labelGap is how far apart names must stand to be read.
const labelGap = 15

// spread moves the names at the lines' ends apart.
func spread(lines []line) {
	order := make([]*line, len(lines))
	for i := range lines {
		order[i] = &lines[i]
	}
	slices.SortStableFunc(order, func(a, b *line) int { return cmp.Compare(a.LabelY, b.LabelY) })
	for i := 1; i < len(order); i++ {
		order[i].LabelY = max(order[i].LabelY, order[i-1].LabelY+labelGap)
	}
	if n := len(order); n > 0 && order[n-1].LabelY > height-bottom {
		over := order[n-1].LabelY - (height - bottom)
		for _, l := range order {
			l.LabelY -= over
		}
	}
}

// seconds as axis and table show them.
func seconds(v float64) string {
	switch {
	case v < 0.9995:
		return fmt.Sprintf("%.3g ms", 1000*v)
	default:
		return fmt.Sprintf("%.3g s", v)
	}
}
