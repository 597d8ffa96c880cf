package prompt

import (
	"encoding/json/jsontext"
	"errors"
	"strconv"
	"strings"

	"github.com/eppctl/eppctl/internal/core/pyjson"
	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/core/tokenizer"
)

// walker reads a body once, token by token, and builds no tree. Where a key
// comes twice the last one counts, as in Python.
type walker struct {
	d     *jsontext.Decoder
	shift int64 // makes d's offsets those of the body
	r     *Request
	lim   Limits

	prompt    content // prompt, text, input_ids, messages or input
	from      string  // the field that it is, of several that may be
	around    content // tools, instructions, system
	embeds    bool    // the prompt is given as embeddings
	truncated bool    // the engine cuts the prompt at a place it chooses
	padded    bool    // or makes it longer
	badSalt   bool
	stored    bool // the conversation begins in an engine's memory
	echo      bool
	logprobs  bool // per output token; with echo, per prompt token too
	promptLP  bool
	scored    bool // SGLang: logprobs from scoreFrom on, below 0 = of the answer only
	scoreFrom int
	unread    bool // JSON to Python perhaps, and not to any reader here: no field is known
}

// content is what one field adds to the request.
type content struct {
	form    form
	ids     []uint32
	further [][]uint32 // of the prompts behind the first
	prompts int
	media   int
	chars   int
	tokens  int // ids, of all prompts
}

type form uint8

const (
	absent form = iota
	text
	ids
	other // present, and not understood
)

// body walks the whole body.
func (w *walker) body(b []byte) *Problem {
	b, known := trimBOM(b)
	if !known { // UTF-16 or UTF-32: JSON for Python, and not worth a reader here
		w.unread = true
		return nil
	}
	w.scoreFrom = -1
	err := w.read(b)
	if err != nil {
		if numbers := pyjson.Numbers(b); numbers != nil {
			*w.r = Request{Kind: w.r.Kind, N: 1}
			*w = walker{r: w.r, lim: w.lim, scoreFrom: -1}
			err = w.read(numbers) // no constant is a whole number, and so an id
		}
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, tokenizer.ErrNotObject):
		return notObject()
	case tooDeep(err): // Python's limit differs by version; the engine decides
		w.unread = true
		return nil
	}
	return invalidJSON(w.shift + w.d.InputOffset())
}

func (w *walker) read(b []byte) error {
	w.d = tokenizer.NewDecoder(b)
	if err := tokenizer.Members(w.d, w.member); err != nil {
		return err
	}
	return tokenizer.End(w.d)
}

// tooDeep recognises jsontext's limit of 10,000 levels, which has no sentinel.
func tooDeep(err error) bool {
	var syntax *jsontext.SyntacticError
	return errors.As(err, &syntax) && syntax.Err != nil && strings.Contains(syntax.Err.Error(), "max depth")
}

func (w *walker) member(name []byte) (err error) {
	r := w.r
	switch string(name) {
	case "model":
		r.Model, _, err = w.text()
	case "lora_path":
		r.Adapter, _, err = w.text()
	case "stream":
		r.Stream, err = w.isTrue()
	case "sampling_params":
		if w.d.PeekKind() != '{' {
			return w.d.SkipValue()
		}
		return tokenizer.Members(w.d, w.sampling)
	case "cache_salt":
		var ok bool
		r.Salt, ok, err = w.text()
		w.badSalt = !ok
	case "extra_key":
		r.Private, err = w.given()
	case "previous_response_id":
		is := false
		is, err = w.given()
		w.stored = is && r.Kind == Responses
	case "echo":
		w.echo, err = w.isTrue()
	case "return_logprob":
		w.scored, err = w.isTrue()
	case "logprob_start_len":
		w.scoreFrom, err = w.number()
	case "prompt_embeds", "input_embeds":
		var is bool
		is, err = w.given()
		w.embeds = w.embeds || is
	case "image_data", "audio_data", "video_data", "features":
		var is bool
		if is, err = w.given(); is {
			r.Media++
		}
	case "tools", "instructions", "system":
		return w.bulk(&w.around)
	case "query", "documents", "queries", "items", "text_1", "text_2", "data_1", "data_2":
		if r.Kind >= Pooling {
			return w.bulk(&w.around)
		}
		return w.d.SkipValue()
	case "prompt", "text", "input_ids", "token_ids", "messages", "input":
		return w.content(string(name))
	default:
		return w.sampling(name)
	}
	return err
}

// sampling reads the options that stand at the top of an OpenAI body and in
// sampling_params of a generate body.
func (w *walker) sampling(name []byte) (err error) {
	switch string(name) {
	case "n":
		w.r.N, err = w.number()
		w.r.N = max(w.r.N, 1)
	case "max_tokens", "max_completion_tokens", "max_output_tokens", "max_new_tokens":
		var n int
		if n, err = w.number(); n > 0 {
			w.r.MaxTokens = n
		}
	case "truncate_prompt_tokens":
		w.truncated, err = w.given()
	case "padding":
		if w.r.Kind != Embeddings {
			return w.d.SkipValue()
		}
		w.padded, err = w.given()
	case "prompt_logprobs":
		w.promptLP, err = w.given()
	case "logprobs":
		w.logprobs, err = w.given()
	default:
		return w.d.SkipValue()
	}
	return err
}

// content reads the field that holds the prompt of this kind of request.
func (w *walker) content(name string) error {
	switch {
	case name == "prompt" && w.r.Kind == Completions,
		(name == "text" || name == "input_ids" || name == "token_ids") && w.r.Kind == Generate:
		return w.promptField()
	case w.r.Kind == Embeddings && (name == "input" || name == "messages"):
		return w.embedding(name)
	case name == "messages" && (w.r.Kind == Chat || w.r.Kind == Messages),
		name == "input" && w.r.Kind == Responses:
		w.prompt = content{}
		return w.messages()
	case w.r.Kind >= Pooling:
		w.prompt = content{}
		return w.bulk(&w.prompt)
	}
	return w.d.SkipValue()
}

// embedding reads what is to be embedded: a prompt, or a chat. Which of them an engine
// takes where both are given is not known.
func (w *walker) embedding(name string) (err error) {
	before, from := w.prompt, w.from
	if w.from = name; name == "input" {
		err = w.promptField()
	} else {
		w.prompt = content{}
		err = w.messages()
	}
	switch {
	case from == "" || from == name || before.form == absent:
	case w.prompt.form == absent: // null
		w.prompt, w.from = before, from
	default:
		w.prompt.form = other
	}
	return err
}

// text reads a string. Anything else is "" and not ok, but for null.
func (w *walker) text() (s string, ok bool, err error) {
	raw, err := w.d.ReadValue()
	if err != nil {
		return "", false, err
	}
	switch raw.Kind() {
	case '"':
		b, _ := jsontext.AppendUnquote(nil, raw) // an error means replaced UTF-8
		return string(b), true, nil
	case 'n':
		return "", true, nil
	}
	return "", false, nil
}

func (w *walker) isTrue() (bool, error) {
	is := w.d.PeekKind() == 't'
	return is, w.d.SkipValue()
}

// given reports whether a field is there and not null.
func (w *walker) given() (bool, error) {
	is := w.d.PeekKind() != 'n'
	return is, w.d.SkipValue()
}

func (w *walker) number() (int, error) {
	raw, err := w.d.ReadValue()
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(string(raw))
	if err != nil {
		return 0, nil // a float, a word, or beyond an int: for the engine to judge
	}
	return n, nil
}

// bulk counts the bytes of a value that is part of the prompt but is not read.
func (w *walker) bulk(c *content) error {
	raw, err := w.d.ReadValue()
	c.chars += len(raw)
	return err
}

// chats are the shapes of the kinds that engines answer as chats.
var chats = map[Kind]tokenizer.Shape{Chat: tokenizer.Chat, Messages: tokenizer.Messages, Responses: tokenizer.Responses}

// conclude turns what was seen into the request's shape and reason.
func (w *walker) conclude() {
	r, p := w.r, &w.prompt
	r.Media += p.media
	r.Prompts = p.prompts
	r.Chars = p.chars + w.around.chars
	r.IDs = p.tokens
	switch {
	case w.unread:
		r.Unmatched = reason.BodyNotJSON
	case r.Private:
		r.Unmatched = reason.PrivateCache
	case w.promptLP || w.echo && w.logprobs || w.scored && w.scoreFrom >= 0:
		// vLLM asked for logprobs of the prompt does not read its cache
		// (vLLM 0.32.0 measured); with echo the plain logprobs are just that.
		// SGLang reads it up to the first token it must score.
		r.Unmatched = reason.CacheBypassed
	case w.stored:
		r.Unmatched = reason.StoredHistory
	case w.embeds || w.truncated && p.form == ids || w.padded || w.badSalt || r.Media > p.media:
		r.Unmatched = reason.Shape
	case p.form == ids:
		r.TokenIDs, r.Further = p.ids, p.further
	case p.form == text && (r.Kind == Completions || r.Kind == Generate):
		r.Shape = tokenizer.Completion
	case p.form == text && w.from == "messages":
		r.Shape = tokenizer.EmbeddingChat
	case p.form == text && r.Kind == Embeddings:
		r.Shape = tokenizer.Embedding
	case p.form == text && chats[r.Kind] != 0:
		r.Shape = chats[r.Kind]
	default:
		r.Unmatched = reason.Shape
	}
}
