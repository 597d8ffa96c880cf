package tokenizer

import "encoding/json/jsontext"

// FindMember finds the value of the last member of this name in a body's object:
// with a key given twice Python takes the last. A body that ends early is searched as
// far as it can be read.
func FindMember(body []byte, name string) (from, to int, found bool) {
	mark := 0
	if len(body) >= 3 && string(body[:3]) == "\xef\xbb\xbf" {
		mark = 3
	}
	_, _ = Object(body[mark:], func(d *jsontext.Decoder, n []byte) error {
		is := string(n) == name
		value, err := d.ReadValue()
		if is && err == nil {
			to = mark + int(d.InputOffset())
			from, found = to-len(value), true
		}
		return err
	})
	return from, to, found
}

// quoted is a string as JSON.
func quoted(s string) []byte {
	b, _ := jsontext.AppendQuote(nil, s) // an error means replaced UTF-8
	return b
}
