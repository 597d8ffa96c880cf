package prompt

import (
	"context"
	"encoding/json/jsontext"
	"slices"

	"github.com/eppctl/eppctl/internal/core/tokenizer"
)

// pieces are the members of a body that make its prompt, in the order in which
// templates print them, whatever the order in the body. What is not among them
// (limits, sampling, a user's name) differs between requests with one prompt.
var pieces = [...]string{"tools", "system", "instructions", "prompt", "text", "messages", "input"}

// stretch is the most that Pieces hands out at once, in bytes: microseconds' worth.
const stretch = 64 << 10

// Pieces hands the bytes that make a body's prompt to write, as they stand there and at
// most 64 KiB at once, until ctx ends: two prompts that begin alike give the same bytes
// from the start when one client wrote them. They are no text and no ids, and good for
// nothing but to be compared. A body that is no JSON object has none. The error is ctx's;
// what was written before it is the beginning of the rest.
func Pieces(ctx context.Context, body []byte, write func([]byte)) error {
	body, known := trimBOM(body)
	if !known {
		return nil
	}
	var found [len(pieces)][]byte
	_, err := tokenizer.Object(body, func(d *jsontext.Decoder, name []byte) error {
		kind := d.PeekKind()
		from, to, err := value(ctx, d)
		if err != nil {
			return err
		}
		for i, p := range pieces {
			if string(name) == p && kind != jsontext.KindNull {
				found[i] = body[from:to] // the body's own bytes outlive the decoder's
			}
		}
		return nil
	})
	if err != nil {
		return ctx.Err() // else it is no JSON object
	}
	for i, piece := range found {
		if piece == nil {
			continue
		}
		write([]byte(pieces[i]))
		for part := range slices.Chunk(piece, stretch) {
			if err := ctx.Err(); err != nil {
				return err
			}
			write(part)
		}
	}
	return nil
}

// value reads a member's value and tells where it stands. A list is read one element
// after another, until ctx ends: conversations are lists.
func value(ctx context.Context, d *jsontext.Decoder) (from, to int64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, 0, err
	}
	if d.PeekKind() != jsontext.KindBeginArray {
		v, err := d.ReadValue()
		to = d.InputOffset()
		return to - int64(len(v)), to, err
	}
	if _, err := d.ReadToken(); err != nil {
		return 0, 0, err
	}
	from = d.InputOffset() - 1
	for kind := d.PeekKind(); kind != jsontext.KindEndArray; kind = d.PeekKind() {
		if err := d.SkipValue(); err != nil {
			return 0, 0, err
		}
		if err := ctx.Err(); err != nil {
			return 0, 0, err
		}
	}
	_, err = d.ReadToken()
	return from, d.InputOffset(), err
}
