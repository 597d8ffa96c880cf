package chat

import (
	"slices"

	"github.com/eppctl/eppctl/internal/core/chat/jinja2"
	"github.com/eppctl/eppctl/internal/core/chat/jinja2/syntax"
)

// Engine is whose preparation of a chat is reproduced.
type Engine uint8

const (
	// VLLM is vLLM, read and measured at 0.32.0.
	VLLM Engine = iota
	// SGLang is SGLang. Only messages whose content is text are known to be
	// passed on as they are (0.5.23); any other prompt is Unverified.
	SGLang
)

// Model is what a model repository and the engine's arguments say about how
// chats are encoded.
type Model struct {
	Type          string   // config.json, model_type: "gpt_oss"
	Architectures []string // config.json, architectures
	TokenizerMode string   // the engine's --tokenizer-mode; "" is auto
	MistralFormat bool     // the repository has tekken.json or tokenizer.model.v*
}

// modes are the values of vLLM's tokenizer_mode that encode chats in code of
// their own (vLLM 0.32.0, renderers/registry.py).
var modes = map[string]string{
	"mistral":      "mistral-common encodes the chat, not the template",
	"deepseek_v32": "DeepSeek's own encoder is used, not the template",
	"deepseek_v4":  "DeepSeek's own encoder is used, not the template",
	"deepseek_v41": "DeepSeek's own encoder is used, not the template",
	"kimi_k3":      "Kimi's own encoder is used, not the template",
	"kimi_audio":   "Kimi-Audio's tokenizer is used, whose template is not in the repository's files",
	"cohere":       "Cohere's own encoder is used, not the template",
	"inkling":      "Inkling's own encoder is used, not the template",
	"terratorch":   "the model takes no chat",
}

// autoModes are the architectures for which auto is another mode (vLLM 0.32.0,
// config/model.py).
var autoModes = map[string]string{
	"DeepseekV32ForCausalLM":             "deepseek_v32",
	"DeepseekV4ForCausalLM":              "deepseek_v4",
	"DeepseekV4ForConditionalGeneration": "deepseek_v4",
	"DeepseekV41ForCausalLM":             "deepseek_v41",
	"KimiK3ForConditionalGeneration":     "kimi_k3",
	"MoonshotKimiaForCausalLM":           "kimi_audio",
	"InklingForCausalLM":                 "inkling",
	"InklingForConditionalGeneration":    "inkling",
}

// autoTypes are the same by model_type, for a config.json that names no architecture.
var autoTypes = map[string]string{
	"deepseek_v32": "deepseek_v32",
	"deepseek_v4":  "deepseek_v4",
	"deepseek_v41": "deepseek_v41",
	"kimi_k3":      "kimi_k3",
}

// Harmony tells the models whose chats vLLM encodes in the Harmony format, whatever its
// mode. Its /tokenize does not: it renders the template (0.23.0 to 0.33.0).
func (m Model) Harmony() bool {
	return m.Type == "gpt_oss" || slices.Contains(m.Architectures, "GptOssForCausalLM")
}

// mode is the tokenizer mode that an engine takes for the model.
func (m Model) mode() string {
	mode := m.TokenizerMode
	if mode == "" || mode == "auto" {
		mode = autoTypes[m.Type]
		for _, a := range m.Architectures {
			if own := autoModes[a]; own != "" {
				mode = own
			}
		}
		if m.MistralFormat {
			mode = "mistral"
		}
	}
	return mode
}

// Bypass says why an engine does not render the model's chats from its Jinja
// template, "" when it does. A template in the repository proves nothing.
func (m Model) Bypass() string {
	if m.Harmony() {
		return "the engine uses the Harmony encoding, not the template"
	}
	mode := m.mode()
	switch mode {
	case "", "auto", "hf", "slow":
		return ""
	}
	if why := modes[mode]; why != "" {
		return why
	}
	return "the tokenizer mode is not known here"
}

// encoder writes the prompt of messages in an engine's own code's stead. vars are what a
// template would be given.
type encoder struct {
	format Format // of the messages' contents
	encode func(messages []jinja2.Value, vars map[string]jinja2.Value) (string, error)
}

// encoders are those that are built here, by tokenizer mode. They are vLLM's.
var encoders = map[string]encoder{
	"deepseek_v32": {StringFormat, encodeDeepSeekV32},
	"deepseek_v4":  {PartsFormat, encodeDeepSeekV4},
}

// encoder is the name of the one that stands for the engine's own code, "" = there is
// none here.
func (o Options) encoder() string {
	if o.Engine == VLLM && o.Model.Type == "gpt_oss" {
		return harmonyMode
	}
	mode := o.Model.mode()
	if _, built := encoders[mode]; built && o.Engine == VLLM && !o.Model.Harmony() {
		return mode
	}
	return ""
}

// toolsVariable is what the tokenizer of Kimi-K2.5, which is code of its repository, gives
// the template instead of tools: their declarations in TypeScript.
const toolsVariable = "tools_ts_str"

// BypassWithTools says why the engine's prompt for a chat with tools has text in it that
// the template is given by code of the model's repository, "" when it has not. tree is the
// template's.
func (m Model) BypassWithTools(tree []syntax.Node) string {
	needs := m.Type == "kimi_k25" || slices.Contains(m.Architectures, "KimiK25ForConditionalGeneration")
	syntax.Walk(tree, func(n syntax.Node) bool {
		needs = needs || isVariable(n, toolsVariable)
		return !needs
	})
	if needs {
		return "code of the model's repository writes the tools, not the template"
	}
	return ""
}
