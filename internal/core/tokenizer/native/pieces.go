package native

// pieces are what ids stand for. They are for display, and encoding needs none of it.
type pieces struct {
	of    func(id uint32) []byte // of the model; nil = forgotten
	added map[uint32]string
}

func (p *pieces) add(id uint32, text string) {
	if p.added == nil {
		p.added = map[uint32]string{}
	}
	p.added[id] = text
}

// Piece is what an id stands for, as the file has it: an added token's text, the bytes
// of a byte-level entry, and of others their text with the mark U+2581 for a blank.
// ok is false for what is no id and after ForgetPieces.
func (t *Tokenizer) Piece(id uint32) (piece []byte, ok bool) {
	if t.pieces.of == nil {
		return nil, false
	}
	if text, ok := t.pieces.added[id]; ok {
		return []byte(text), true
	}
	piece = t.pieces.of(id)
	return piece, len(piece) > 0
}

// ForgetPieces gives back the memory that only Piece needs, some 4 MB. It must be
// called before anybody else has the tokenizer.
func (t *Tokenizer) ForgetPieces() { t.pieces = pieces{} }
