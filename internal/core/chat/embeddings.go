package chat

import "github.com/eppctl/eppctl/internal/core/chat/jinja2"

// embeddings reads a chat to be embedded as vLLM does (entrypoints/pooling/base,
// read, not measured): no answer is begun unless the request asks for it; tools,
// documents, efforts and the server's default kwargs do not reach the template.
// SGLang embeds no chats.
func (c *converter) embeddings(v jinja2.Value) (*request, error) {
	if c.engine != VLLM {
		return nil, unrenderable("a chat to be embedded, which only vLLM is known to take")
	}
	own := jinja2.Dict()
	jinja2.Put(own, "add_generation_prompt", jinja2.Bool(false))
	for _, key := range []string{"messages", "add_generation_prompt", "continue_final_message", "chat_template", "chat_template_kwargs"} {
		if m, given := jinja2.Get(v, key); given {
			jinja2.Put(own, key, m)
		}
	}
	r, err := readRequest(own)
	if err == nil {
		r.plain = true
	}
	return r, err
}
