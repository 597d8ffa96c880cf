package event

import "slices"

// maxPullGroups bounds the cache groups that are told apart.
const maxPullGroups = 64

type pullGroup struct{ window, layer int }

// group numbers the cache group of an event. False when there are too many.
func (d *PullDecoder) group(p *pulledEvent) (int, bool) {
	g := pullGroup{p.window, p.layer}
	if i := slices.Index(d.groups, g); i >= 0 {
		return i, true
	}
	if len(d.groups) >= maxPullGroups {
		return 0, false
	}
	d.groups = append(d.groups, g)
	if !d.begun {
		d.sortGroups()
	}
	return slices.Index(d.groups, g), true
}

// sortGroups puts the largest window first. Once blocks of group 0 were stored
// the numbers stay: whoever joins late may take a smaller window for it, and
// learns better when the blocks are dropped. (Both are then taken to hold whole
// prompts, which promises too little.)
func (d *PullDecoder) sortGroups() {
	slices.SortStableFunc(d.groups, func(a, b pullGroup) int { return b.window - a.window })
}

// place begins an event of the group of p.
func (d *PullDecoder) place(p *pulledEvent, k Kind) (e Event, reason string) {
	g, ok := d.group(p)
	if !ok {
		return e, SkipFieldRange
	}
	e = Event{Kind: k, Group: g, LoRAID: -1, Layout: LayoutPull, HashForm: "int"}
	if w := d.groups[g].window; w < d.groups[0].window {
		// Not one of vLLM's names: nobody has measured what TensorRT-LLM needs of a
		// window for a hit, so that the index shows such pods as approximate.
		e.SpecKind, e.Window = "window", w
	}
	return e, ""
}
