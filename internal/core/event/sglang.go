package event

import "github.com/tinylib/msgp/msgp"

// readPair reads the token_ids element of an engine with EAGLE speculation:
// [token, next]. The block's tokens are the first elements; next is look-ahead
// and no part of the block's identity.
func readPair(b []byte) (id uint32, rest []byte, reason string) {
	n, v, err := readHeader(b, msgp.ArrayType)
	if err != nil || n != 2 || !isInt(v) {
		return 0, b, SkipTokenType
	}
	id, v, reason = readToken(v)
	if reason != "" || !isInt(v) {
		return 0, b, SkipTokenType
	}
	_, v, reason = readToken(v)
	return id, v, reason
}

// metadata reads the map that SGLang (PR 30827) puts where vLLM has lora_name,
// only for salted requests.
func (d *Decoder) metadata(e *Event, v []byte) {
	n, v, _ := readHeader(v, msgp.MapType)
	for range n / 2 {
		key := v
		value, err := skip(key, 0)
		if err != nil {
			return // cannot be: scan has been over it
		}
		if name, _ := readText(key); string(name) == "cache_salt" {
			d.salt(e, value)
		}
		if v, err = skip(value, 0); err != nil {
			return
		}
	}
}

// salt reads cache_salt, which SGLang states on each store of a salted request
// and leaves out of all others.
func (d *Decoder) salt(e *Event, v []byte) {
	if v == nil || msgp.IsNil(v) {
		return
	}
	s, ok := readText(v)
	if !ok {
		d.fail(SkipFieldType)
		return
	}
	e.Salt, e.HasSalt = d.text(s), true
}
