package native

// Settled returns an offset of at most at for which the ids of text[:offset] begin
// the ids of every text that begins with text[:at]: the last safe cut before it (see
// cutter), 0 if there is none. What the post-processor adds is not counted.
func (t *Tokenizer) Settled(text string, at int) int {
	text = text[:at]
	last := 0
	if t.inText != nil {
		for i := t.inText(text, 1); i >= 0; i = t.inText(text, i+1) {
			last = i
		}
	}
	if t.raw == nil || !t.raw.plain || t.normed != nil && !t.normed.plain {
		return last
	}
	// A token counts if no longer one could stand in its place when the text goes on.
	for i := 0; ; {
		k, a := t.raw.next(text, i)
		if a == nil || k+t.raw.longest() > len(text) {
			return last
		}
		i = k + len(a.Content)
		last = max(last, i)
	}
}

// longest is the length of the longest token.
func (m *matcher) longest() (n int) {
	for _, list := range m.byPair {
		n = max(n, len(list[0].Content))
	}
	return max(n, min(len(m.single), 1))
}

// Around returns what is put before and behind the ids of a text with specials. The
// slices must not be written to.
func (t *Tokenizer) Around() (before, after []uint32) {
	return t.surround.before, t.surround.after
}
