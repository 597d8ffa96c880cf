package chat

import (
	"strings"

	"github.com/eppctl/eppctl/internal/core/chat/jinja2"
)

// The words of DeepSeek-V3.2's chats, besides those of deepseek.go.
const dsResults, dsResultsEnd = "<function_results>", "</function_results>"

// deepseekV32 is a chat as vLLM encodes it in the mode deepseek_v32 (0.33.0,
// tokenizers/deepseek_v32.py, after the encoder that DeepSeek published with the model).
type deepseekV32 struct {
	messages []jinja2.Value
	thinking bool
	lastUser int // index of the last message of a user or developer, -1 = none
	caller   int // index of the last message that is no tool's, -1 = none yet
	b        strings.Builder
}

// encodeDeepSeekV32 writes the prompt of prepared messages. It always ends where the
// engine's does, whatever add_generation_prompt says.
func encodeDeepSeekV32(messages []jinja2.Value, vars map[string]jinja2.Value) (string, error) {
	c := &deepseekV32{messages: messages, caller: -1}
	var err error
	if c.thinking, _, err = thinks(vars); err != nil {
		return "", err
	}
	if tools := vars["tools"]; tools.IsList() && tools.AsList().Len() > 0 {
		system := jinja2.Dict()
		jinja2.Put(system, "role", jinja2.String("system"))
		jinja2.Put(system, "tools", tools)
		c.messages = append([]jinja2.Value{system}, messages...)
	}
	c.findLastUser()
	if err := c.refused(); err != nil {
		return "", err
	}
	c.b.WriteString(dsBegin)
	for i := range c.messages {
		if err := c.message(i); err != nil {
			return "", err
		}
		if c.role(i) != "tool" {
			c.caller = i
		}
	}
	return c.b.String(), nil
}

func (c *deepseekV32) role(i int) string { return text(c.messages[i], "role") }

func (c *deepseekV32) findLastUser() {
	c.lastUser = len(c.messages) - 1
	for c.lastUser >= 0 && c.role(c.lastUser) != "user" && c.role(c.lastUser) != "developer" {
		c.lastUser--
	}
}

// refused finds what the encoder fails on as a whole: where the last word is the user's,
// it leaves out what developers said before, and then asks for messages that are gone.
func (c *deepseekV32) refused() error {
	if !c.thinking || c.role(len(c.messages)-1) != "user" {
		return nil
	}
	for i := range c.lastUser {
		if c.role(i) == "developer" {
			return rejected("a developer's message is not the last one, and thinking is on")
		}
	}
	return nil
}

func (c *deepseekV32) message(i int) error {
	m := c.messages[i]
	content := text(m, "content")
	switch role := c.role(i); role {
	case "system":
		c.b.WriteString(content)
		return c.tools(m)
	case "developer":
		if content == "" {
			return rejected("a developer's message is empty")
		}
		c.b.WriteString(dsUser)
		if err := c.tools(m); err != nil {
			return err
		}
		c.b.WriteString("\n\n# The user's message is: " + content + dsAssistant)
		c.answer(i == c.lastUser)
	case "user":
		c.b.WriteString(dsUser + content + dsAssistant)
		c.answer(i == c.lastUser)
	case "tool":
		return c.result(i, content)
	case "assistant":
		return c.assistant(i, content)
	default:
		return rejected("the role of a message is none of those known")
	}
	return nil
}

// answer begins what the model says: a thought, or no thought.
func (c *deepseekV32) answer(thinks bool) {
	if thinks && c.thinking {
		c.b.WriteString(dsThinking)
	} else {
		c.b.WriteString(dsSpoken)
	}
}

// assistant writes what the model said, with its thought only behind the last user's
// message.
func (c *deepseekV32) assistant(i int, content string) error {
	m := c.messages[i]
	calls := member(m, "tool_calls")
	if c.thinking && i > c.lastUser {
		reasoning := text(m, "reasoning")
		if reasoning == "" && calls.IsNone() {
			return rejected("an assistant's message has neither reasoning nor tool calls, and thinking is on")
		}
		c.b.WriteString(reasoning + dsSpoken)
	}
	c.b.WriteString(content)
	if calls.IsList() && calls.AsList().Len() > 0 {
		if err := writeCalls(&c.b, "function_calls", calls.AsList().Items); err != nil {
			return err
		}
	}
	c.b.WriteString(dsEnd)
	return nil
}

// result writes what a function gave. The results of one message's calls stand in one
// block, in the order of the calls. Of a result in front of everything the encoder takes
// the last message for the one that called, as a list of Python has it at -1.
func (c *deepseekV32) result(i int, content string) error {
	at := c.caller
	caller := at
	if caller < 0 {
		caller = len(c.messages) - 1
	}
	if i > 0 && (at < 0 || c.role(caller) != "assistant") {
		return rejected("a tool's message does not follow an assistant's")
	}
	calls := member(c.messages[caller], "tool_calls")
	order := i - at
	if !calls.IsList() || calls.AsList().Len() < order {
		return rejected("a tool's message has no call that it answers")
	}
	if order == 1 {
		c.b.WriteString("\n\n" + dsResults)
	}
	c.b.WriteString("\n<result>" + content + "</result>")
	if order == calls.AsList().Len() {
		c.b.WriteString("\n" + dsResultsEnd + "\n\n")
		c.answer(i >= c.lastUser)
	}
	return nil
}

// tools writes the functions that a message brings.
func (c *deepseekV32) tools(m jinja2.Value) error {
	schemas, err := functionSchemas(m)
	if schemas != "" {
		c.b.WriteString("\n\n" + strings.ReplaceAll(dsTools, "{schemas}", schemas))
	}
	return err
}

// dsTools is what the model is told about functions. The words are part of the model's
// format (DeepSeek-V3.2, MIT licence), as vLLM has them.
const dsTools = `## Tools
You have access to a set of tools you can use to answer the user's question.
You can invoke functions by writing a "<｜DSML｜function_calls>" block like the following as part of your reply to the user:
<｜DSML｜function_calls>
<｜DSML｜invoke name="$FUNCTION_NAME">
<｜DSML｜parameter name="$PARAMETER_NAME" string="true|false">$PARAMETER_VALUE</｜DSML｜parameter>
...
</｜DSML｜invoke>
<｜DSML｜invoke name="$FUNCTION_NAME2">
...
</｜DSML｜invoke>
</｜DSML｜function_calls>
String and scalar parameters should be specified as is without any escaping or quotes, while lists and objects should use JSON format. The "string" attribute should be set to "true" for string type parameters and "false" for other types (numbers, booleans, arrays, objects).
If the thinking_mode is enabled, then after function results you should strongly consider outputting a thinking block. Here is an example:
<｜DSML｜function_calls>
...
</｜DSML｜function_calls>
<function_results>
...
</function_results>
<think>...thinking about results</think>
Here are the functions available in JSONSchema format:
<functions>
{schemas}
</functions>
`
