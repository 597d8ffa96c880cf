package prompt

import (
	"encoding/json/jsontext"

	"github.com/eppctl/eppctl/internal/core/tokenizer"
)

// pieces are the members of a body that make its prompt, in the order in which
// templates print them, whatever the order in the body. What is not among them
// (limits, sampling, a user's name) differs between requests with one prompt.
var pieces = [...]string{"tools", "system", "instructions", "prompt", "text", "messages", "input"}

// Pieces hands the bytes that make a body's prompt to write, as they stand there:
// two prompts that begin alike give the same bytes from the start when one client
// wrote them. They are no text and no ids, and good for nothing but to be compared.
// A body that is no JSON object has none.
func Pieces(body []byte, write func([]byte)) {
	body, known := trimBOM(body)
	if !known {
		return
	}
	var found [len(pieces)][]byte
	_, err := tokenizer.Object(body, func(d *jsontext.Decoder, name []byte) error {
		value, err := d.ReadValue()
		if err != nil {
			return err
		}
		for i, p := range pieces {
			if string(name) == p && value.Kind() != jsontext.Kind('n') {
				end := d.InputOffset() // the body's own bytes outlive the decoder's
				found[i] = body[end-int64(len(value)) : end]
			}
		}
		return nil
	})
	if err != nil {
		return
	}
	for i, piece := range found {
		if piece != nil {
			write([]byte(pieces[i]))
			write(piece)
		}
	}
}
