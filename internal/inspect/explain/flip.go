package explain

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/eppctl/eppctl/internal/core/pick"
)

// maxFlips is how many FLIP shows without --all.
const maxFlips = 2

// flips says what would have given the request to another pod.
func (p *page) flips() {
	if p.x.Flip == nil || p.x.Pick.Pod == nil {
		return
	}
	list := *p.x.Flip
	if len(list) == 0 {
		p.line("FLIP", "no single input or weight gives it to another pod")
		return
	}
	shown := list
	if !p.o.All && !p.o.Wide {
		shown = list[:min(len(list), maxFlips)]
	}
	note := "each alone, all else held"
	if n := len(list) - len(shown); n > 0 {
		note += fmt.Sprintf("; %d more (-o wide)", n)
	}
	for i := range shown {
		label, more := "", ""
		if i == 0 {
			label = "FLIP"
		}
		if i == len(shown)-1 {
			more = note
		}
		p.uncut(label, p.flipText(&shown[i]), more)
	}
}

func (p *page) flipText(f *pick.ExplainedFlip) string {
	if f.Pod == nil {
		return fmt.Sprintf("%s wins if weight %s %s -> %s", f.Winner, f.Field, amount(f.Now), amount(f.At))
	}
	text := fmt.Sprintf("%s wins if %s of %s %s -> %s%s", f.Winner, f.Field, *f.Pod, amount(f.Now), amount(f.At), unitOf(f.Unit, f.At))
	if size := p.blockSize(*f.Pod); f.Field == "cached" && size > 0 {
		text += fmt.Sprintf(" (%d -> %d blocks)", int(f.Now)/size, int(f.At)/size)
	}
	return text
}

// blockSize is that of a pod, as MATCH counts; 0 where nothing matched that tells it.
func (p *page) blockSize(name string) int {
	if x := podOf(p.x.Pods, name); x != nil && x.Match.Size != nil {
		return *x.Match.Size
	}
	return 0
}

// flipFlag is the flag that supposes it.
func flipFlag(f *pick.ExplainedFlip) string {
	if f.Pod == nil {
		return "--weight " + quoted(f.Field+"="+amount(f.At))
	}
	return "--set " + quoted(*f.Pod+"."+f.Field+"="+amount(f.At))
}

// amount writes a number without an exponent and no longer than it is.
func amount(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// unitOf is the unit behind an amount of it.
func unitOf(unit *string, of float64) string {
	switch u := deref(unit); {
	case u == "" || u == "share":
		return ""
	case of == 1:
		return " " + strings.TrimSuffix(u, "s")
	default:
		return " " + u
	}
}
