package modelsource

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/eppctl/eppctl/internal/core/chat"
	"github.com/eppctl/eppctl/internal/core/tokenizer/native"
)

// config is what the files beside the vocabulary say.
type config struct {
	files   []File // read so far, by name
	chat    chat.Files
	model   chat.Model
	class   string // tokenizer_config.json, tokenizer_class
	addsBOS *bool  // and add_bos_token, nil = not said
	addsEOS *bool  // and add_eos_token
	added   []native.Added
}

// config reads the small files of a place.
func (p *Place) config(names []string) (*config, error) {
	c := &config{model: chat.Model{MistralFormat: slices.ContainsFunc(names, isMistral)}}
	for _, name := range names {
		if isVocabulary(name) {
			continue
		}
		b, err := p.read(name)
		if err != nil {
			return nil, err
		}
		if err := c.take(name, b); err != nil {
			return nil, &Error{Kind: Invalid, What: path.Join(p.Dir, name), Why: err.Error(), Err: err}
		}
		c.note(name, b)
	}
	return c, nil
}

// note keeps a file's hash, in the order of names.
func (c *config) note(name string, b []byte) File {
	sum := native.SHA256(b)
	f := File{Name: name, Size: int64(len(b)), SHA256: hex.EncodeToString(sum[:])}
	at, _ := slices.BinarySearchFunc(c.files, name, func(f File, n string) int { return strings.Compare(f.Name, n) })
	c.files = slices.Insert(c.files, at, f)
	return f
}

func (c *config) take(name string, b []byte) error {
	switch name {
	case "config.json":
		return c.takeModel(b)
	case "tokenizer_config.json":
		c.chat.TokenizerConfig = b
		return c.takeTokenizer(b)
	case "special_tokens_map.json":
		c.chat.SpecialTokens = b
	case "chat_template.json":
		c.chat.ProcessorJSON = b
	case "chat_template.jinja":
		c.chat.ChatTemplate = b
	default:
		if short, ok := strings.CutPrefix(name, "additional_chat_templates/"); ok {
			if c.chat.Additional == nil {
				c.chat.Additional = map[string][]byte{}
			}
			c.chat.Additional[strings.TrimSuffix(short, ".jinja")] = b
		}
	}
	return nil
}

func (c *config) takeModel(b []byte) error {
	var v struct {
		Type          string   `json:"model_type"`
		Architectures []string `json:"architectures"`
	}
	if err := json.Unmarshal(b, &v); err != nil {
		return fmt.Errorf("not as expected: %w", err)
	}
	c.model.Type, c.model.Architectures = v.Type, v.Architectures
	return nil
}

func (c *config) takeTokenizer(b []byte) error {
	var v struct {
		Class   string                  `json:"tokenizer_class"`
		AddsBOS *bool                   `json:"add_bos_token"`
		AddsEOS *bool                   `json:"add_eos_token"`
		Added   map[uint32]native.Added `json:"added_tokens_decoder"`
	}
	if err := json.Unmarshal(b, &v); err != nil {
		return fmt.Errorf("not as expected: %w", err)
	}
	c.class, c.addsBOS, c.addsEOS = v.Class, v.AddsBOS, v.AddsEOS
	for id, a := range v.Added {
		a.ID = id
		c.added = append(c.added, a)
	}
	slices.SortFunc(c.added, func(a, b native.Added) int { return int(a.ID) - int(b.ID) })
	return nil
}

// mistral tells whether the engine takes mistral-common's files.
func (c *config) mistral() bool {
	switch c.model.TokenizerMode {
	case "", "auto":
		return c.model.MistralFormat
	}
	return c.model.TokenizerMode == "mistral"
}

// template names the file of the template that chats without tools are rendered with.
func (c *config) template(option string) string {
	switch {
	case option != "":
		return "option"
	case c.chat.ProcessorJSON != nil:
		return "chat_template.json"
	case c.chat.ChatTemplate != nil:
		return "chat_template.jinja"
	}
	return "tokenizer_config.json"
}

// tokenizer reads the vocabulary. doubt says why it may not be the engine's.
func (c *config) tokenizer(name string, b []byte) (t *native.Tokenizer, doubt string, err error) {
	switch {
	case name == "tokenizer.json":
		if t, err = native.LoadHuggingFace(b); err == nil {
			doubt = c.addedDoubt(t)
		}
	case name == "tekken.json":
		t, err = native.LoadTekken(b)
	case isTiktoken(name):
		return c.ranks(b)
	default:
		t, err = native.LoadSentencePiece(b)
		if !c.mistral() {
			doubt = "the engine converts tokenizer.model to another form, which was not compared"
		}
	}
	return t, doubt, err
}
