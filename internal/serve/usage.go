package serve

import (
	"bytes"
	"encoding/json/jsontext"
	"strconv"

	"github.com/eppctl/eppctl/internal/core/tokenizer"
)

// usage is what an engine says a request cost, in tokens.
type usage struct {
	Prompt, Output int
	Cached         int // of the prompt, -1 = not told
}

// usageTail is how much of a response's end is kept to find its usage in. vLLM
// and SGLang write usage behind the answer, in the last object or the last event
// but [DONE]; what follows it are a few short members.
const usageTail = 8 << 10

// usageReader keeps the end of a response as it passes. It holds generated text
// for as long as its stream lasts and gives nothing of it away. Not safe for
// concurrent use.
type usageReader struct{ tail []byte }

func (u *usageReader) add(piece []byte) {
	if len(piece) >= usageTail {
		u.tail = append(u.tail[:0], piece[len(piece)-usageTail:]...)
		return
	}
	if len(u.tail)+len(piece) > 2*usageTail { // now and then, so that each byte moves once
		u.tail = append(u.tail[:0], u.tail[len(u.tail)-usageTail:]...)
	}
	u.tail = append(u.tail, piece...)
}

// usageKey cannot stand in generated text, whose quotes have backslashes.
var usageKey = []byte(`"usage"`)

// result is the last usage that was told.
func (u *usageReader) result() (usage, bool) {
	for tail := u.tail; ; {
		i := bytes.LastIndex(tail, usageKey)
		if i < 0 {
			return usage{}, false
		}
		if got, ok := readUsage(u.tail[i+len(usageKey):]); ok {
			return got, true
		}
		tail = tail[:i] // null, as in every event but the last
	}
}

// readUsage reads the object behind the key, with the names of OpenAI's
// completions or of its responses.
func readUsage(b []byte) (usage, bool) {
	i := skipSpace(b, 0)
	if i == len(b) || b[i] != ':' {
		return usage{}, false
	}
	got, told := usage{Cached: -1}, false
	d := tokenizer.NewDecoder(b[i+1:])
	details := func(name []byte) error {
		if string(name) == "cached_tokens" {
			return count32(d, &got.Cached)
		}
		return d.SkipValue()
	}
	err := tokenizer.Members(d, func(name []byte) error {
		switch string(name) {
		case "prompt_tokens", "input_tokens":
			told = true
			return count32(d, &got.Prompt)
		case "completion_tokens", "output_tokens":
			return count32(d, &got.Output)
		case "prompt_tokens_details", "input_tokens_details":
			if d.PeekKind() == jsontext.KindBeginObject {
				return tokenizer.Members(d, details)
			}
		}
		return d.SkipValue()
	})
	return got, err == nil && told
}

// count32 reads a number of tokens into n; what is none leaves it as it is.
func count32(d *jsontext.Decoder, n *int) error {
	raw, err := d.ReadValue()
	if err != nil {
		return err
	}
	if v, err := strconv.ParseUint(string(raw), 10, 31); err == nil {
		*n = int(v)
	}
	return nil
}
