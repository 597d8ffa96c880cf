package modelsource

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/eppctl/eppctl/internal/core/chat"
	"github.com/eppctl/eppctl/internal/core/encode"
)

// Options are what an engine was started with, and what an operator asks for.
type Options struct {
	Engine        chat.Engine
	TokenizerMode string      // --tokenizer-mode; "" = auto
	Template      string      // --chat-template, as text; "" = the model's
	TemplateFile  string      // the same as a file, read with the model's
	ContentFormat chat.Format // --chat-template-content-format
	Kwargs        []byte      // --default-chat-template-kwargs, a JSON object
	// SHA256 is what the vocabulary's file, or all files together (Identity.Digest),
	// must have; "" = anything.
	SHA256 string
	Cache  int // bytes of earlier prompts that are remembered
	// Now is the engine's time in its zone; nil = unknown.
	Now       func() time.Time
	StartDate string // VLLM_SYSTEM_START_DATE; "" = it is not set
	// Release is the engine's now; nil = unknown.
	Release func() chat.Release
	// Pieces keeps what ids stand for, for display.
	Pieces bool
}

// File is one that ids come from.
type File struct {
	Name   string
	Size   int64
	SHA256 string
}

// Identity is what an operator is told about a loaded model.
type Identity struct {
	Name, Revision, Commit, Dir string

	Vocabulary File   // the file that the ids come from
	Format     string // "tokenizer.json", "tekken.json", "tiktoken", "tokenizer.model"
	Split      string // name of the hand-written splitter; "regex" = a slow one from the file's pattern
	Files      []File // all files that were read, by name
	Digest     string // SHA-256 over the names and hashes of Files
	Template   string // file that the chat template comes from; "option" = Options.Template or the file of it, "encoder MODE" = none, but code of ours
	Override   string // SHA-256 of Options.TemplateFile, "" = none
	NoChat     string // why chats are not rendered
	// TokenizeDiffers: what the engine's /tokenize makes of a chat is not what it computes.
	TokenizeDiffers bool
	Doubt           string // why these ids may not be the engine's
	Took            time.Duration
}

// Model is an encoder and what it was made of.
type Model struct {
	*encode.Model
	Identity Identity
}

// Load makes the encoder of a model. It reads each file once, keeps none, and takes
// the memory that README.md states.
func (p *Place) Load(o Options) (*Model, error) {
	began := time.Now()
	names, err := p.files()
	if err != nil {
		return nil, err
	}
	c, err := p.config(names)
	if err != nil {
		return nil, err
	}
	c.model.TokenizerMode = o.TokenizerMode
	vocabulary, err := c.choose(names)
	if err != nil {
		return nil, &Error{Kind: Missing, What: "model folder " + p.Dir, Why: err.Error(), Hint: "engines load " + known, Err: err}
	}
	id := Identity{Name: p.Name, Revision: p.Revision, Commit: p.Commit, Dir: p.Dir}
	b, err := p.read(vocabulary)
	if err != nil {
		return nil, err
	}
	id.Vocabulary = c.note(vocabulary, b)
	id.Files, id.Digest = c.files, digest(c.files)
	if want := strings.ToLower(o.SHA256); want != "" && want != id.Vocabulary.SHA256 && want != id.Digest {
		return nil, &Error{
			Kind: Invalid, What: "the tokenizer of " + p.Name,
			Why:  fmt.Sprintf("%s has SHA-256 %s and all its files %s; configured is %s", vocabulary, id.Vocabulary.SHA256, id.Digest, clip(o.SHA256)),
			Hint: "if the file is right, configure its hash; if not, fetch it again or name the revision",
		}
	}
	if o.TemplateFile != "" {
		if o.Template, err = templateFile(o.TemplateFile); err != nil {
			return nil, err
		}
		id.Override = fmt.Sprintf("%x", sha256.Sum256([]byte(o.Template)))
	}
	eo := encode.Options{Engine: o.Engine, Cache: o.Cache, Now: o.Now}
	if eo.Tokenizer, id.Doubt, err = c.tokenizer(vocabulary, b); err != nil {
		return nil, &Error{Kind: Invalid, What: path.Join(p.Dir, vocabulary), Why: err.Error(), Err: err}
	}
	if !o.Pieces {
		eo.Tokenizer.ForgetPieces()
	}
	eo.Doubt = id.Doubt
	eo.SpecialsDoubt = c.specialsDoubt(eo.Tokenizer)
	eo.Chat, eo.NoChat = chat.New(c.chat, chat.Options{
		Engine: o.Engine, Model: c.model, Template: o.Template, ContentFormat: o.ContentFormat, Kwargs: o.Kwargs, Release: o.Release, StartDate: o.StartDate,
	})
	id.TokenizeDiffers = o.Engine == chat.VLLM && c.model.Harmony()
	if eo.NoChat == nil {
		eo.NoChat = otherVocabulary(eo.Chat, eo.Tokenizer)
	}
	if eo.NoChat != nil {
		eo.Chat, id.NoChat = nil, eo.NoChat.Error()
	} else if id.Template = eo.Chat.Encoder(); id.Template != "" {
		id.Template = "encoder " + id.Template
	} else {
		id.Template = c.template(o.Template)
	}
	info := eo.Tokenizer.Info()
	id.Format, id.Split, id.Took = info.Format, info.Split, time.Since(began)
	return &Model{Model: encode.New(eo), Identity: id}, nil
}

// known are the vocabularies that are read, for messages.
const known = "tokenizer.json, tekken.json, tokenizer.model, tiktoken.model or *.tiktoken"

// choose says which file engines take the ids from: mistral-common's where they use
// that, else what transformers prefers.
func (c *config) choose(names []string) (string, error) {
	one := func(is func(string) bool) (string, error) {
		found := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !is(n) })
		switch len(found) {
		case 0:
			return "", nil
		case 1:
			return found[0], nil
		}
		return "", fmt.Errorf("found %s; expected one of them", strings.Join(found, ", "))
	}
	named := func(n string) func(string) bool { return func(s string) bool { return s == n } }
	order := []func(string) bool{named("tokenizer.json"), isTiktoken, named("tokenizer.model"), named("tekken.json"), isSentencePiece}
	if c.mistral() {
		order = []func(string) bool{named("tekken.json"), isMistral, named("tokenizer.model")}
	}
	for _, is := range order {
		if name, err := one(is); name != "" || err != nil {
			return name, err
		}
	}
	return "", errors.New("it has no tokenizer file")
}

// digest is one hash for all files.
func digest(files []File) string {
	h := sha256.New()
	for _, f := range files {
		fmt.Fprintf(h, "%s  %s\n", f.SHA256, f.Name) // as sha256sum prints them
	}
	return hex.EncodeToString(h.Sum(nil))
}
