package serve

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // small images have no database of time zones

	"github.com/goccy/go-yaml/ast"

	"github.com/eppctl/eppctl/internal/core/chat"
	"github.com/eppctl/eppctl/internal/modelsource"
)

// Tokenizer says who turns a model's requests into token ids, and from what files.
type Tokenizer struct {
	Source   string `yaml:"source"`   // folder, or name on the hub; "" = no native tokenizer
	Revision string `yaml:"revision"` // of a name, "" = main
	SHA256   string `yaml:"sha256"`   // that the vocabulary or all files must have, "" = any
	Native   onOff  `yaml:"native"`   // "" = on
	Chat     string `yaml:"chat"`     // auto, native, render, tokenize; "" = auto
	Mode     string `yaml:"mode"`     // the engine's --tokenizer-mode, "" = auto
	Engine   string `yaml:"engine"`   // vllm, sglang; "" = that of the model's pods

	// What the engine was started with; the zero values are its defaults.
	ChatTemplate  string     `yaml:"chat_template"`        // file, --chat-template
	Kwargs        jsonObject `yaml:"chat_template_kwargs"` // --default-chat-template-kwargs
	ContentFormat string     `yaml:"content_format"`       // --chat-template-content-format
	TimeZone      string     `yaml:"time_zone"`            // of its clock, "" = not known
	StartDate     string     `yaml:"start_date"`           // VLLM_SYSTEM_START_DATE, "" = it is not set

	// Generate: pods are asked about parity's probes by requests that they compute; "" = off.
	Generate onOff `yaml:"parity_generate"`

	Cache Bytes    `yaml:"cache"` // memory for earlier prompts, 0 = defaultTokenizerCache
	Order []string `yaml:"order"` // providers, nil = all
}

// onOff is a switch; "" is its default.
type onOff string

func (o *onOff) decodeNode(d *decoder, n ast.Node, key string) {
	switch strings.ToLower(scalarText(n)) {
	case "on", "true":
		*o = "on"
	case "off", "false":
		*o = "off"
	default:
		d.problem(n, key, describe(n), "on or off", "")
	}
}

// Endpoints are servers that tell token ids. Without URLs any pod that serves the
// model is asked.
type Endpoints struct {
	URLs    []string      `yaml:"urls"`
	Timeout time.Duration `yaml:"timeout"` // 0 = that of limits
}

// The providers of token ids, in the order in which they are asked: what costs no
// call first, what the engine itself says of a whole request before what it says of
// its text. The last gives none.
const (
	byNative   = "native"
	byRender   = "render"
	byTokenize = "tokenize"
	byBytes    = "bytes"
)

var providers = []string{byNative, byRender, byTokenize, byBytes}

// defaultTokenizerCache remembers the conversations of some hundred users: a prompt
// of 8,000 tokens takes about 100 kB of text and ids.
const defaultTokenizerCache = 64 << 20

// maxTokenizerCache is more than any fleet's prompts of an hour.
const maxTokenizerCache = 16 << 30

// order is who is asked.
func (t *Tokenizer) order() []string {
	if len(t.Order) == 0 {
		return providers
	}
	return t.Order
}

// Loads reports whether there is a native tokenizer to be loaded.
func (t *Tokenizer) Loads() bool {
	return t.Source != "" && t.Native != "off" && slices.Contains(t.order(), byNative)
}

var hash = regexp.MustCompile(`^[0-9A-Fa-f]{64}$`)

// startDate: vLLM prints whatever it is, and people put a date there.
var startDate = regexp.MustCompile(`^[\x20-\x7e]{0,64}$`)

// tokenizer checks one model's section.
func (d *decoder) tokenizer(key string, t *Tokenizer) {
	d.oneOf(key+".chat", t.Chat, "auto", byNative, byRender, byTokenize)
	d.oneOf(key+".engine", t.Engine, "vllm", "sglang")
	d.oneOf(key+".content_format", t.ContentFormat, chat.FormatNames()...)
	if _, err := time.LoadLocation(t.TimeZone); err != nil {
		d.bad(key+".time_zone", fmt.Sprintf("found %q", clip(t.TimeZone)), "a name of the IANA database such as Europe/Berlin, UTC, or Local for that of this process", "")
	}
	if !startDate.MatchString(t.StartDate) {
		d.bad(key+".start_date", fmt.Sprintf("found %q", clip(t.StartDate)), "what VLLM_SYSTEM_START_DATE is set to, such as 2026-01-31: up to 64 printable characters", "")
	}
	if t.SHA256 != "" && !hash.MatchString(t.SHA256) {
		d.bad(key+".sha256", fmt.Sprintf("found %q", clip(t.SHA256)), "64 hexadecimal digits, as sha256sum prints them", "")
	}
	if t.Cache != 0 {
		d.within(key+".cache", t.Cache, 1<<16, maxTokenizerCache)
	}
	d.source(key, t)
	for i, name := range t.Order {
		at := key + ".order[" + strconv.Itoa(i) + "]"
		switch {
		case !slices.Contains(providers, name):
			d.bad(at, fmt.Sprintf("found %q", clip(name)), "one of "+strings.Join(providers, ", "), didYouMean(name, providers))
		case slices.Contains(t.Order[:i], name):
			d.bad(at, fmt.Sprintf("found %q a second time", name), "each provider once", "")
		case i < len(t.Order)-1 && name == byBytes:
			d.bad(at, `found "bytes" before another provider`, "bytes last: it is for prompts whose token ids nobody tells", "")
		}
	}
}

// source checks where the files are. A folder need not exist yet.
func (d *decoder) source(key string, t *Tokenizer) {
	folder := strings.HasPrefix(t.Source, "/") || strings.HasPrefix(t.Source, ".")
	if t.Source == "" {
		for sub, v := range map[string]string{
			"revision": t.Revision, "sha256": t.SHA256, "mode": t.Mode,
			"chat_template": t.ChatTemplate, "content_format": t.ContentFormat, "time_zone": t.TimeZone, "start_date": t.StartDate, "chat_template_kwargs": string(t.Kwargs),
		} {
			if v != "" {
				d.bad(key+"."+sub, fmt.Sprintf("found %q without a source", clip(v)), "source too: a folder, or a name on the hub", "")
			}
		}
		return
	}
	if !folder {
		if err := modelsource.CheckName(t.Source); err != nil {
			d.bad(key+".source", fmt.Sprintf("found %q", clip(t.Source)), "a folder such as /models/llama, or a name on the hub such as Qwen/Qwen3-8B", "")
		}
	}
	if t.Revision == "" {
		return
	}
	if folder {
		d.bad(key+".revision", fmt.Sprintf("found %q beside a folder", clip(t.Revision)), "no revision: folders have none", "")
	} else if err := modelsource.CheckRevision(t.Revision); err != nil {
		d.bad(key+".revision", fmt.Sprintf("found %q", clip(t.Revision)), "a branch, tag or commit", "")
	}
}

// servers checks a list of them.
func (d *decoder) servers(key string, e *Endpoints) {
	for j, u := range e.URLs {
		if p, err := url.Parse(u); err != nil || p.Host == "" || p.Scheme != "http" && p.Scheme != "https" {
			d.bad(key+".urls["+strconv.Itoa(j)+"]", fmt.Sprintf("found %q", clip(u)), "a URL such as http://10.0.0.7:8000", "")
		}
	}
	if e.Timeout != 0 {
		d.between(key+".timeout", e.Timeout, time.Millisecond, time.Minute)
	}
}

// oneOf checks a word; "" stands for the default.
func (d *decoder) oneOf(key, v string, words ...string) {
	if v != "" && !slices.Contains(words, v) {
		d.bad(key, fmt.Sprintf("found %q", clip(v)), "one of "+strings.Join(words, ", "), didYouMean(v, words))
	}
}
