package chat

import "github.com/eppctl/eppctl/internal/core/chat/jinja2"

// sglang passes messages whose content is text on as they are, which its prompts
// of the captures show (0.5.23). For everything else the way of vLLM is taken,
// and said to be unverified.
func (p *preparation) sglang(req *request) ([]jinja2.Value, error) {
	plain := req.tools.IsNone() && !req.goesOn
	for _, m := range req.messages {
		plain = plain && m.IsDict() && jinja2.IsText(member(m, "content")) && jinja2.IsText(member(m, "role"))
		if plain {
			for _, key := range m.AsDict().Keys {
				plain = plain && (key == "role" || key == "content")
			}
		}
	}
	if !plain {
		p.warn(Unverified)
		return p.prepare(req.messages)
	}
	return req.messages, nil
}
