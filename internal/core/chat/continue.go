package chat

import (
	"strings"

	"github.com/eppctl/eppctl/internal/core/chat/jinja2"
	"github.com/eppctl/eppctl/internal/core/chat/jinja2/syntax"
)

// continueTag is what transformers appends to the last message to find its end
// in the rendered text.
const continueTag = "CONTINUE_FINAL_MESSAGE_TAG "

// markEnd appends the tag to the last message's text and returns that text.
func markEnd(messages []jinja2.Value, source string) (string, error) {
	if !strings.Contains(source, "content") {
		return "", rejected("continue_final_message for a template that reads no content")
	}
	last := messages[len(messages)-1]
	switch c := member(last, "content"); {
	case jinja2.IsText(c):
		jinja2.Put(last, "content", jinja2.String(c.AsString()+continueTag))
		return c.AsString(), nil
	case c.IsList():
		parts := c.AsList().Items
		for i := len(parts) - 1; i >= 0; i-- {
			if s, ok := jinja2.Get(parts[i], "text"); ok && jinja2.IsText(s) {
				jinja2.Put(parts[i], "text", jinja2.String(s.AsString()+continueTag))
				return s.AsString(), nil
			}
		}
	}
	return "", rejected("continue_final_message and there is no text to continue")
}

// cutAtEnd cuts a rendered text behind the last message's.
func cutAtEnd(rendered, final string) (string, error) {
	tag := strings.TrimFunc(continueTag, syntax.IsSpace)
	at := strings.LastIndex(rendered, tag)
	if at < 0 || !strings.Contains(rendered, strings.TrimFunc(final, syntax.IsSpace)) {
		return "", rejected("continue_final_message and the template does not print the final message")
	}
	if strings.HasPrefix(rendered[at:], continueTag) {
		return rendered[:at], nil
	}
	return strings.TrimRightFunc(rendered[:at], syntax.IsSpace), nil
}
