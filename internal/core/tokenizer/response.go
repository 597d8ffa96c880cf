package tokenizer

import (
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"strconv"
)

// Errors of ParseResponse.
var (
	ErrNoIDs = errors.New("reply holds no token ids")
	ErrCount = errors.New("reply's count is not the number of its token ids")
)

// ParseResponse reads the ids of a reply to POST /tokenize, at most limit of them.
// Errors never quote the reply.
func ParseResponse(b []byte, limit int) ([]uint32, error) {
	d := NewDecoder(b)
	var ids []uint32
	count := -1
	err := Members(d, func(name []byte) error {
		switch string(name) {
		case "tokens":
			raw, err := d.ReadValue()
			if err != nil {
				return err
			}
			ids, err = AppendIDs(ids[:0], raw, limit)
			return err
		case "count":
			raw, err := d.ReadValue()
			if err != nil {
				return err
			}
			if n, err := strconv.Atoi(string(raw)); err == nil {
				count = n
			}
			return nil
		}
		return d.SkipValue()
	})
	var syntax *jsontext.SyntacticError
	switch {
	case errors.As(err, &syntax):
		return nil, errSyntax(d)
	case err != nil:
		return nil, err
	case len(ids) == 0:
		return nil, ErrNoIDs
	case count >= 0 && count != len(ids):
		return nil, ErrCount
	}
	return ids, nil
}

// errSyntax says where and not what: the decoder's own error quotes the text.
func errSyntax(d *jsontext.Decoder) error {
	return fmt.Errorf("reply is not JSON at byte %d", d.InputOffset())
}
