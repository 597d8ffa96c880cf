// Package tokenize is eppctl tokenize: text and request bodies to token ids, by a
// model's own files and the function that serve uses.
package tokenize

import (
	"bufio"
	"context"
	"encoding/json"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/eppctl/eppctl/internal/core/chat"
	"github.com/eppctl/eppctl/internal/core/encode"
	"github.com/eppctl/eppctl/internal/core/prompt"
	"github.com/eppctl/eppctl/internal/core/tokenizer"
	"github.com/eppctl/eppctl/internal/inspect"
	"github.com/eppctl/eppctl/internal/inspect/out"
	"github.com/eppctl/eppctl/internal/modelsource"
)

// Command is what was asked for.
type Command struct {
	Model    string // folder or name
	Revision string // of a name; "" = main
	Engine   string // whose chats: one of Engines

	// What the engine was started with, as in the configuration of serve.
	ChatTemplate  string // file; "" = the model's
	Kwargs        string // JSON object, "" = none
	ContentFormat string // one of ContentFormats
	TimeZone      string // of its clock

	Input     string // one of Inputs
	API       string // whose bodies they are: one of APIs
	NoSpecial bool   // of texts; a request body says itself
	Count     bool   // print numbers of tokens
	Pieces    bool   // print a line for each token, with what it stands for
	KeepGoing bool   // a line that cannot be tokenized does not end it
	Format    string // one of Formats
}

// Engines, Inputs and Formats are the values that the flags take.
func Engines() []string { return []string{"vllm", "sglang"} }

// Inputs are the forms of stdin: auto is jsonl when the first line is a JSON string
// or object, one body when all of it is.
func Inputs() []string { return []string{"auto", "text", "jsonl"} }

// APIs are the endpoints whose bodies are tokenized. By auto a body with messages is a
// chat, one with prompt or text a completion; what else may be meant is an error.
func APIs() []string {
	return []string{"auto", "completions", "chat", "messages", "responses", "embeddings"}
}

// ContentFormats are the ways in which contents reach a template.
func ContentFormats() []string { return chat.FormatNames() }

// Formats: table is one array of ids per line.
func Formats() []string { return []string{"table", "jsonl"} }

// Run loads the model and tokenizes s.In until it ends or ctx does. Memory is
// that of the model and of the longest line.
func (c *Command) Run(ctx context.Context, settings *modelsource.Settings, s *out.Streams) error {
	m, err := c.load(ctx, settings, s)
	if err != nil {
		return err
	}
	w := &writer{command: c, out: bufio.NewWriterSize(s.Out, 64<<10), streams: s, model: m}
	err = w.run(ctx)
	return errors.Join(err, w.out.Flush())
}

func (c *Command) load(ctx context.Context, settings *modelsource.Settings, s *out.Streams) (*modelsource.Model, error) {
	o, err := c.options()
	if err != nil {
		return nil, err
	}
	settings.Patience = modelsource.PersonsPatience
	if s.ErrTTY {
		settings.Progress, settings.Asking = progress(s), asking(c.Model, s)
	}
	p, err := settings.Find(ctx, c.Model, c.Revision)
	if err != nil {
		return nil, Told(err)
	}
	if p.Stale != nil {
		fmt.Fprintf(s.Err, "warn: %s; the cache is used, commit %s\n", out.Clean(p.Stale.Error()), p.Commit)
	}
	m, err := p.Load(o)
	return m, Told(err)
}

// options are what the engine was started with.
func (c *Command) options() (modelsource.Options, error) {
	o := modelsource.Options{TemplateFile: c.ChatTemplate, ContentFormat: chat.FormatOf(c.ContentFormat), Pieces: c.Pieces}
	if c.Engine == "sglang" {
		o.Engine = chat.SGLang
	}
	if c.Kwargs != "" {
		if v := jsontext.Value(c.Kwargs); !isValid(v) || v.Kind() != '{' {
			return o, usage("--chat-template-kwargs: found something else than a JSON object", `try: --chat-template-kwargs '{"enable_thinking": false}'`)
		}
		o.Kwargs = []byte(c.Kwargs)
	}
	zone, err := time.LoadLocation(c.TimeZone)
	if err != nil {
		return o, usage(fmt.Sprintf("--time-zone: found %q; expected a name of the IANA database, UTC, or Local", c.TimeZone), "try: --time-zone Europe/Berlin")
	}
	o.Now = func() time.Time { return time.Now().In(zone) }
	return o, nil
}

func usage(what, hint string) error {
	return &inspect.Error{Kind: inspect.Usage, Code: "E_USAGE", What: what, Hint: hint}
}

// asking tells a person who looks on what is waited for.
func asking(model string, s *out.Streams) func(hub string) {
	return func(hub string) {
		fmt.Fprintf(s.Err, "asking %s for %s\n", out.Clean(hub), out.Clean(model))
	}
}

// progress tells such a person of a fetch that takes long.
func progress(s *out.Streams) func(modelsource.Progress) {
	due := time.Now().Add(500 * time.Millisecond)
	return func(p modelsource.Progress) {
		if now := time.Now(); now.After(due) {
			due = now.Add(time.Second)
			fmt.Fprintf(s.Err, "fetching %s: %d of %d bytes\n", out.Clean(p.File), p.Done, p.Size)
		}
	}
}

// Told is an error of modelsource in the terms of the commands.
func Told(err error) error {
	e, ok := errors.AsType[*modelsource.Error](err)
	if !ok {
		return err
	}
	kind := map[modelsource.Kind]inspect.Kind{
		modelsource.Invalid: inspect.Usage, modelsource.Missing: inspect.Usage, modelsource.Unreachable: inspect.Unreachable,
	}[e.Kind]
	told := &inspect.Error{Kind: kind, Code: "E_MODEL", Failure: e.Failure}
	told.Err = err
	return told
}

// writer tokenizes inputs and prints what comes of them.
type writer struct {
	command *Command
	out     *bufio.Writer
	streams *out.Streams
	model   *modelsource.Model
	warned  []string
	failed  int
}

func (w *writer) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	inputs := read(ctx, w.streams.In, w.command.Input, w.command.API)
	for {
		var in input
		var more bool
		select {
		case in, more = <-inputs:
		default: // nothing is waiting: show what there is
			if err := w.out.Flush(); err != nil {
				return err
			}
			select {
			case in, more = <-inputs:
			case <-ctx.Done():
				return nil // a stream that is ended by a signal is done
			}
		}
		if !more {
			return w.account()
		}
		if err := w.one(ctx, in); err != nil {
			return err
		}
	}
}

// one prints an input. Its content is in no error: the line's number is.
func (w *writer) one(ctx context.Context, in input) error {
	if in.broken {
		if _, err := io.WriteString(w.streams.Err, "warn: stdin begins as a request body and is no JSON: it is taken for a text; --input says what it is\n"); err != nil {
			return err
		}
	}
	err := in.err
	var e *encode.Encoding
	if err == nil {
		e, err = w.encode(ctx, in)
	}
	if err == nil {
		return w.print(in, e)
	}
	what := "stdin"
	if in.line > 0 {
		what = fmt.Sprintf("line %d", in.line)
	}
	if !w.command.KeepGoing || in.fatal {
		return &inspect.Error{Kind: inspect.Failed, Code: "E_INPUT", What: what + " cannot be tokenized", Why: err.Error(), Err: err}
	}
	w.failed++
	_, err = fmt.Fprintf(w.streams.Err, "warn: %s: %s\n", what, out.Clean(err.Error()))
	return err
}

func (w *writer) encode(ctx context.Context, in input) (*encode.Encoding, error) {
	if in.shape != 0 {
		e, err := w.model.Encode(ctx, tokenizer.Text{Shape: in.shape, Body: in.body})
		if errors.Is(err, encode.ErrNoPrompt) {
			if given := givenIDs(in); given != nil {
				return given, nil
			}
		}
		return e, err
	}
	ids, _, err := w.model.EncodeText(ctx, in.text, !w.command.NoSpecial)
	return &encode.Encoding{IDs: ids, Cut: -1}, err
}

// givenIDs are the ids of a body that brings them, which serve takes as they are; nil
// if it brings none.
func givenIDs(in input) *encode.Encoding {
	for _, path := range idPaths[in.shape] {
		r, problem := prompt.Parse(path, "application/json", in.body, prompt.Limits{DefaultModel: "any"})
		if problem != nil || len(r.TokenIDs) == 0 {
			continue
		}
		return &encode.Encoding{IDs: r.TokenIDs, Further: r.Further, Cut: -1}
	}
	return nil
}

// idPaths are the endpoints that a body with ids may be for.
var idPaths = map[tokenizer.Shape][]string{tokenizer.Completion: {"/v1/completions", "/generate"}, tokenizer.Embedding: {"/v1/embeddings"}}

// record is a line of -o jsonl.
type record struct {
	Line   int      `json:"line"`             // of the input; 0 = all of it is one text
	Prompt int      `json:"prompt,omitempty"` // of the request's several, from 1; 0 = it has one
	Count  int      `json:"count"`
	IDs    []uint32 `json:"ids,omitempty"`
	Pieces []string `json:"pieces,omitempty"` // escaped; bytes that are no UTF-8 as \xNN
	Cut    bool     `json:"cut,omitempty"`    // the ids end before the first image, sound or video
	Doubts []string `json:"doubts,omitempty"`
}

// cutNote is said once, as doubts are: the ids and their number look whole.
const cutNote = "ids end before the first image, sound or video of a request: how many tokens it takes, a render endpoint knows"

// print prints a line for each prompt of an input, in their order.
func (w *writer) print(in input, e *encode.Encoding) error {
	notes := e.Doubts
	if e.Cut >= 0 {
		notes = append(slices.Clip(notes), cutNote)
	}
	for _, d := range notes {
		if !slices.Contains(w.warned, d) {
			w.warned = append(w.warned, d)
			fmt.Fprintf(w.streams.Err, "warn: %s\n", out.Clean(d))
		}
	}
	r := record{Line: in.line, IDs: e.IDs, Cut: e.Cut >= 0, Doubts: e.Doubts}
	if len(e.Further) > 0 {
		r.Prompt = 1
	}
	err := w.printOne(r)
	for _, ids := range e.Further {
		if err != nil {
			return err
		}
		r.Prompt, r.IDs = r.Prompt+1, ids
		err = w.printOne(r)
	}
	return err
}

func (w *writer) printOne(r record) (err error) {
	ids := r.IDs
	if ids == nil {
		ids = []uint32{} // prints as []
	}
	var b []byte
	switch {
	case w.command.Format == "jsonl":
		r.Count, r.IDs = len(ids), ids
		if w.command.Count {
			r.IDs = nil
		}
		if w.command.Pieces {
			r.Pieces = w.pieces(ids)
			for i, quoted := range r.Pieces { // JSON has quotes of its own
				r.Pieces[i] = strings.TrimSuffix(strings.TrimPrefix(quoted, `"`), `"`)
			}
		}
		b, err = json.Marshal(r)
	case w.command.Pieces:
		for i, piece := range w.pieces(ids) {
			b = fmt.Appendf(b, "%d\t%s\n", ids[i], piece)
		}
	case w.command.Count:
		b = fmt.Append(nil, len(ids))
	default:
		b, err = json.Marshal(ids)
	}
	if err != nil {
		return err
	}
	_, err = w.out.Write(append(b, '\n'))
	return err
}

// pieces are what ids stand for, escaped for a terminal.
func (w *writer) pieces(ids []uint32) []string {
	list := make([]string, len(ids))
	for i, id := range ids {
		piece, _ := w.model.Piece(id) // none of an id that the file does not name
		list[i] = strconv.Quote(string(piece))
	}
	return list
}

func (w *writer) account() error {
	if w.failed == 0 {
		return nil
	}
	return &inspect.Error{Kind: inspect.Incomplete, Code: "E_INPUT", What: fmt.Sprintf("lines that could not be tokenized: %d", w.failed), Why: "each was told above"}
}
