package native

import "fmt"

// general encodes step by step.
type general struct {
	steps []step
	piece func(out []uint32, piece string, sc *scratch) ([]uint32, error)
}

func (e *general) encode(out []uint32, s string, p part, sc *scratch) ([]uint32, error) {
	pieces := append(sc.pieces[0][:0], passage{s, p.head})
	other := sc.pieces[1]
	for _, st := range e.steps {
		other = other[:0]
		room := maxGrowth * max(len(s), 1)
		for _, piece := range pieces {
			var err error
			from := len(other)
			if other, err = st.cut(sc.ctx, other, piece); err != nil {
				return nil, fmt.Errorf("pre-tokenizer: %w", err)
			}
			for _, cut := range other[from:] {
				room -= len(cut.s)
			}
			if room < 0 {
				return nil, fmt.Errorf("pre-tokenizer: %w", errGrowth)
			}
		}
		pieces, other = other, pieces
	}
	for k, piece := range pieces {
		if k%1024 == 0 {
			if err := sc.ctx.Err(); err != nil {
				return nil, err
			}
		}
		if piece.s != "" {
			var err error
			if out, err = e.piece(out, piece.s, sc); err != nil {
				return nil, err
			}
		}
	}
	clear(pieces[:cap(pieces)]) // the text is not kept alive
	clear(other[:cap(other)])
	sc.pieces = [2][]passage{pieces, other}
	return out, nil
}
