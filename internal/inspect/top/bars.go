package top

import (
	"math"
	"strings"
)

// glyphs are the characters of bars. Both sets have the same widths, so that
// switching moves nothing.
type glyphs struct {
	full, empty string
	thin        string    // up to the most, behind what is full up to the half
	parts       []string  // of one column, rising
	tiers       [4]string // GPU, host, disk, remote
	up, down    string    // a column's order
	ticks       []string  // of a spark line, rising
	rule        string    // between the parts of the screen
	times       string    // "1.4 times"
}

var (
	blockGlyphs = glyphs{
		full: "█", empty: "·", thin: "░", parts: []string{"▏", "▎", "▍", "▌", "▋", "▊", "▉"}, tiers: [4]string{"█", "▓", "▒", "░"},
		up: "▲", down: "▼", ticks: []string{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}, rule: "─", times: "×",
	}
	asciiGlyphs = glyphs{
		full: "#", empty: ".", thin: ":", parts: []string{"-", "="}, tiers: [4]string{"#", "=", "-", ":"},
		up: "^", down: "v", ticks: []string{".", ":", "-", "=", "+", "*", "#", "@"}, rule: "-", times: "x",
	}
)

// bar draws a share of w columns.
func (g *glyphs) bar(share float64, w int, l look) cell {
	c := g.share(share, w, l)
	return c + text(dim, strings.Repeat(g.empty, max(w-c.width(), 0)))
}

// share is the full part of a bar. Something is never drawn as nothing, and not all
// never as all: a prompt cached but for its end is not a cached prompt.
func (g *glyphs) share(share float64, w int, l look) cell {
	share = min(max(share, 0), 1)
	steps := len(g.parts) + 1 // of one column
	n := int(math.Round(share * float64(w*steps)))
	switch {
	case share > 0 && n == 0:
		n = 1
	case share < 1 && n == w*steps:
		n--
	}
	s := strings.Repeat(g.full, n/steps)
	if part := n % steps; part > 0 {
		s += g.parts[part-1]
	}
	return text(l, s)
}

// stack draws amounts beside each other, of the whole that fills w columns, w being
// at least their number. Each amount that there is gets a column.
func (g *glyphs) stack(amounts [4]int, whole, w int) cell {
	looks := [4]look{cool, onHost, onDisk, onStore}
	var columns [4]int
	sum := 0
	for i, n := range amounts {
		if n > 0 && whole > 0 {
			columns[i] = max(int(math.Round(min(float64(n)/float64(whole), 1)*float64(w))), 1)
			sum += columns[i]
		}
	}
	for ; sum > w; sum-- { // rounding up is paid for by the widest
		widest := 0
		for i := range columns {
			if columns[i] > columns[widest] {
				widest = i
			}
		}
		columns[widest]--
	}
	var c cell
	for i, k := range columns {
		c += text(looks[i], strings.Repeat(g.tiers[i], k))
	}
	return c + text(dim, strings.Repeat(g.empty, w-sum))
}

// spark draws values as a line of ticks, the highest of them, and full, at full
// height. What is not a number leaves a gap.
func (g *glyphs) spark(values []float64, full float64, w int, l look) cell {
	values = values[max(len(values)-w, 0):]
	top := full
	for _, v := range values {
		if v > top {
			top = v
		}
	}
	var b strings.Builder
	for _, v := range values {
		i := 0
		switch {
		case math.IsNaN(v):
			b.WriteByte(' ')
			continue
		case top > 0:
			i = min(int(v/top*float64(len(g.ticks))), len(g.ticks)-1)
		}
		b.WriteString(g.ticks[i])
	}
	return text(l, b.String())
}

// load is the look of something that is better empty.
func load(share float64) look {
	switch {
	case share >= 0.9:
		return hot
	case share >= 0.7:
		return warm
	}
	return cool
}
