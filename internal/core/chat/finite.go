package chat

import (
	"math"
	"strings"

	"github.com/eppctl/eppctl/internal/core/chat/jinja2"
)

// vLLM reads NaN and the infinities in a body, and then refuses them as the value of any
// field that it has but the loose ones, and in a list there: a type is not met, or a
// range (0.32.0, each field sent to a running engine: encode.TestConstants). What a body
// has besides is no field, and takes anything.
const (
	allFields    = "cache_salt ec_transfer_params kv_transfer_params mm_payload model return_mm_kwargs stream temperature top_k top_p vllm_xargs watermarking "
	openAIFields = "frequency_penalty ignore_eos include_stop_str_in_output logit_bias min_p presence_penalty priority repetition_penalty request_id " +
		"seed session_id skip_special_tokens stop stop_token_ids structured_outputs user "
	choiceFields = "add_special_tokens allowed_token_ids bad_words echo length_penalty logprob_token_ids logprobs max_tokens min_tokens n prompt_logprobs " +
		"repetition_detection response_format return_token_ids return_token_offsets return_tokens_as_token_ids routed_experts_prompt_start " +
		"spaces_between_special_tokens stream_interval stream_options thinking_token_budget truncate_prompt_tokens truncation_side use_beam_search "
	embeddingFields = "add_special_tokens cache_salt dimensions embed_dtype encoding_format endianness mm_processor_kwargs model padding priority " +
		"request_id truncate_prompt_tokens truncation_side use_activation user "
)

// looseFields may be no finite number themselves: 0.32.0 takes the first, 0.23.0 the
// others too (its request classes and SamplingParams).
var looseFields = set("length_penalty temperature repetition_penalty")

// fields are those of a chat, by its form.
var fields = map[API]map[string]bool{
	Completions: set(allFields + openAIFields + choiceFields + "add_generation_prompt chat_template chat_template_kwargs continue_final_message " +
		"documents include_reasoning max_completion_tokens media_io_kwargs messages mm_processor_kwargs parallel_tool_calls reasoning_effort " +
		"return_prompt_text tool_choice tools top_logprobs"),
	Messages: set(allFields + "chat_template_kwargs max_tokens messages metadata output_config stop_sequences system thinking tool_choice tools"),
	Responses: set(allFields + openAIFields + "background chat_template_kwargs enable_response_messages include include_reasoning input " +
		"instructions max_output_tokens max_tool_calls media_io_kwargs metadata mm_processor_kwargs parallel_tool_calls previous_input_messages " +
		"previous_response_id prompt prompt_cache_key reasoning service_tier store text tool_choice tools top_logprobs truncation"),
	Embeddings: set(embeddingFields + "add_generation_prompt chat_template chat_template_kwargs continue_final_message media_io_kwargs messages"),
}

var (
	completionFields = set(allFields + openAIFields + choiceFields + "prompt prompt_embeds suffix")
	embeddedFields   = set(embeddingFields + "input")
)

func set(words string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(words) {
		out[w] = true
	}
	return out
}

// CheckConstants refuses a body of /v1/completions, or of /v1/embeddings with a text, for
// NaN or an infinity that the engine refuses. It is for bodies that have one: SGLang
// takes none of them (0.5.23, http_server.py: ORJSONRequest).
func CheckConstants(engine Engine, embeds bool, body []byte) error {
	if engine == SGLang {
		return rejected("NaN or Infinity, which SGLang does not read")
	}
	v, err := jinja2.ParseJSON(body)
	if err != nil || !v.IsDict() {
		return nil // nesting, or what the caller tells of itself
	}
	if embeds {
		return checkFinite(embeddedFields, v)
	}
	return checkFinite(completionFields, v)
}

// checkFinite refuses a body for a field that is no finite number, or lists one.
func checkFinite(fields map[string]bool, body jinja2.Value) error {
	for _, key := range body.AsDict().Keys {
		v := member(body, key)
		infinite := !isFinite(v) && !looseFields[key]
		if v.IsList() {
			for _, item := range v.AsList().Items {
				infinite = infinite || !isFinite(item)
			}
		}
		if infinite && fields[key] {
			return rejected(key + " is no finite number")
		}
	}
	return nil
}

// isFinite reports whether v is anything but NaN or an infinity.
func isFinite(v jinja2.Value) bool {
	return !v.IsFloat() || !math.IsNaN(v.AsFloat()) && !math.IsInf(v.AsFloat(), 0)
}
