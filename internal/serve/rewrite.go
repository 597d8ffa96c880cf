package serve

import (
	"bytes"
	"encoding/json/jsontext"
	"slices"
	"strconv"

	"github.com/eppctl/eppctl/internal/core/prompt"
	"github.com/eppctl/eppctl/internal/core/tokenizer"
)

// rewrite makes a request name the model as the pods serve it, where the client
// used an alias or the gateway asked for another one: an engine answers 404 to a
// name it does not serve. Only the bytes of the name change.
type rewrite struct {
	asked, served string
	from, to      int    // bytes of the body that are replaced
	value         []byte // JSON that stands there instead

	// plain is the text of a body that came compressed. The changed body takes its
	// place as it is: neither vLLM 0.32.0 nor SGLang 0.5.23 reads a
	// content-encoding of requests, and every server reads a body without one.
	plain []byte
}

// newRewrite finds what to change in a body for it to name served. It returns
// nil and named true when the body does already, and nil and false when it
// cannot be told. A body without a model gets one only if insert is set.
func newRewrite(body []byte, served string, insert bool) (w *rewrite, named bool) {
	from, to, found := tokenizer.FindMember(body, "model")
	if !found {
		start := bytes.IndexByte(body, '{') + 1
		if !insert || start == 0 {
			return nil, false
		}
		member := append([]byte(`"model":`), quoted(served)...)
		if rest := bytes.TrimLeft(body[start:], " \t\r\n"); !bytes.HasPrefix(rest, []byte("}")) {
			member = append(member, ',')
		}
		return &rewrite{served: served, from: start, to: start, value: member}, false
	}
	asked, _ := unquoted(body[from:to])
	switch asked {
	case served:
		return nil, true
	case "": // the engine takes its default, as it would for none
		if !insert {
			return nil, false
		}
	}
	if len(asked) > prompt.MaxName { // not worth keeping until the response comes
		asked = ""
	}
	return &rewrite{asked: asked, served: served, from: from, to: to, value: quoted(served)}, false
}

// grown is by how many bytes the body changes.
func (w *rewrite) grown() int { return len(w.value) - (w.to - w.from) }

// apply returns the changed body; the one given stays as it is.
func (w *rewrite) apply(body []byte) []byte {
	if w.plain != nil {
		body = w.plain
	}
	return slices.Concat(body[:w.from], w.value, body[w.to:])
}

// length is the content-length of the changed body, from the client's own; ""
// when the client announced none. It has to be exact: behind
// allow_content_length_header a smaller one cuts the body and a larger one hangs
// the request, and in BUFFERED mode Envoy answers 500 when it does not match.
func (w *rewrite) length(told int64) string {
	if told < 0 {
		return ""
	}
	if w.plain != nil {
		told = int64(len(w.plain))
	}
	return strconv.FormatInt(told+int64(w.grown()), 10)
}

func quoted(s string) []byte {
	b, _ := jsontext.AppendQuote(nil, s) // an error means replaced UTF-8
	return b
}

// unquoted reads a JSON string; ok is false for any other value.
func unquoted(raw []byte) (s string, ok bool) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	b, _ := jsontext.AppendUnquote(nil, raw) // an error means replaced UTF-8
	return string(b), true
}
