package tokenize

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/eppctl/eppctl/internal/core/pyjson"
	"github.com/eppctl/eppctl/internal/core/tokenizer"
)

const (
	maxLine = 64 << 20  // bytes: above what serve takes of a body by default
	maxText = 256 << 20 // of an input that is one text
)

// input is a text or a request body to tokenize, or why there is none.
type input struct {
	line  int // from 1; 0 = all of the input
	text  string
	shape tokenizer.Shape // 0 = text
	body  []byte
	err   error
	fatal bool // nothing can come behind it
	// broken marks a text that begins as a request body does: a body that was cut, or not.
	broken bool
}

// read gives the inputs of r, one at a time, until it ends or ctx does. The
// goroutine behind it ends when the read it is in returns: a terminal cannot be
// made to.
func read(ctx context.Context, r io.Reader, form, api string) <-chan input {
	c := make(chan input)
	go func() {
		defer close(c)
		give := func(in input) bool {
			select {
			case c <- in:
				return true
			case <-ctx.Done():
				return false
			}
		}
		b := bufio.NewReaderSize(r, 64<<10)
		if form == "text" {
			give(whole(nil, b))
			return
		}
		for n := 1; ; n++ {
			line, err := readLine(b)
			if n == 1 && form == "auto" && (errors.Is(err, errLong) || !isLine(line)) {
				in := whole(line, b)
				if in.err == nil && isLine([]byte(in.text)) { // one body on several lines
					in = parseLine([]byte(in.text), api)
				} else {
					in.broken = strings.HasPrefix(strings.TrimSpace(in.text), `{"`)
				}
				give(in)
				return
			}
			if len(bytes.TrimSpace(line)) > 0 || errors.Is(err, errLong) {
				in := parseLine(line, api)
				if errors.Is(err, errLong) {
					in = input{err: err}
					err = skipLine(b)
				}
				in.line = n
				if !give(in) {
					return
				}
			}
			if err == io.EOF {
				return
			}
			if err != nil {
				give(input{line: n, err: err, fatal: true})
				return
			}
		}
	}()
	return c
}

var errLong = fmt.Errorf("it is longer than %d bytes", maxLine)

// readLine reads a line of at most maxLine bytes, with its end.
func readLine(b *bufio.Reader) (line []byte, err error) {
	for {
		part, err := b.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxLine:
			return line, errLong
		case err == bufio.ErrBufferFull:
		default:
			return line, err
		}
	}
}

// skipLine drops the rest of a line.
func skipLine(b *bufio.Reader) error {
	for {
		if _, err := b.ReadSlice('\n'); err != bufio.ErrBufferFull {
			return err
		}
	}
}

// whole is the input as one text, of which a part has been read.
func whole(begun []byte, rest io.Reader) input {
	b, err := io.ReadAll(io.LimitReader(rest, maxText+1-int64(len(begun))))
	b = append(begun, b...)
	switch {
	case err != nil:
		return input{err: err, fatal: true}
	case len(b) > maxText:
		return input{err: fmt.Errorf("it is longer than %d bytes", maxText), fatal: true}
	case !utf8.Valid(b):
		return input{err: errors.New("it is not UTF-8"), fatal: true}
	}
	return input{text: string(b)}
}

// isLine tells JSON lines from text by the first of them. A line of JSON that is no
// Unicode is one too: parseLine has an error for it.
func isLine(line []byte) bool {
	v := jsontext.Value(trim(line))
	return len(v) > 0 && (v[0] == '"' || v[0] == '{') && isValid(v)
}

// isValid reports whether Python reads v.
func isValid(v jsontext.Value) bool {
	lenient := []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}
	if v.IsValid(lenient...) {
		return true
	}
	numbers := jsontext.Value(pyjson.Numbers(v))
	return numbers != nil && numbers.IsValid(lenient...)
}

// trim drops what stands around JSON: white space, and the mark in front that editors
// write and Python skips.
func trim(line []byte) []byte {
	return bytes.TrimSpace(bytes.TrimPrefix(line, []byte("\xef\xbb\xbf")))
}

var errNotLine = errors.New("it is neither a JSON string nor a request body with prompt, text or messages")

// Bodies that look like those of two endpoints, which make different prompts of them.
var (
	errWhichMessages = errors.New("it has messages and system: --api messages takes it for a body of /v1/messages, --api chat for one of /v1/chat/completions")
	errWhichInput    = errors.New("it has input: --api responses takes it for a body of /v1/responses, --api embeddings for one of /v1/embeddings")
)

// shapes are the values of --api but auto.
var shapes = map[string]tokenizer.Shape{
	"completions": tokenizer.Completion, "chat": tokenizer.Chat, "messages": tokenizer.Messages, "responses": tokenizer.Responses, "embeddings": tokenizer.Embedding,
}

// parseLine reads a JSON string or a request body. Errors do not quote it.
func parseLine(line []byte, api string) input {
	line = trim(line)
	switch {
	case len(line) == 0:
		return input{err: errNotLine}
	case line[0] == '"':
		v := jsontext.Value(line)
		if !v.IsValid() {
			return input{err: errors.New("it is not a JSON string of Unicode")}
		}
		text, err := jsontext.AppendUnquote(nil, line)
		if err != nil {
			return input{err: errors.New("it is not a JSON string of Unicode")}
		}
		return input{text: string(text)}
	case line[0] != '{':
		return input{err: errNotLine}
	}
	has := map[string]bool{}
	var last *jsontext.Decoder
	_, err := tokenizer.Object(line, func(d *jsontext.Decoder, name []byte) error {
		last = d
		switch string(name) {
		case "messages", "prompt", "text", "input_ids", "token_ids", "input", "system":
			has[string(name)] = true
		}
		return d.SkipValue()
	})
	if err != nil { // the decoder's own error quotes the line
		at := int64(0)
		if last != nil {
			at = last.InputOffset()
		}
		return input{err: fmt.Errorf("it is not JSON at byte %d", at)}
	}
	in := input{body: line, shape: shapes[api]}
	switch {
	case in.shape == 0:
		in.shape, in.err = shapeOf(has)
	case in.shape == tokenizer.Embedding && has["messages"]:
		in.shape = tokenizer.EmbeddingChat
	}
	return in
}

// shapeOf tells the endpoint by the members of a body.
func shapeOf(has map[string]bool) (tokenizer.Shape, error) {
	switch {
	case has["messages"] && has["system"]:
		return 0, errWhichMessages
	case has["messages"]:
		return tokenizer.Chat, nil
	case has["prompt"], has["text"], has["input_ids"], has["token_ids"]:
		return tokenizer.Completion, nil
	case has["input"]:
		return 0, errWhichInput
	}
	return 0, errNotLine
}
