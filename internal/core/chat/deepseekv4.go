package chat

import (
	"slices"
	"strings"

	"github.com/eppctl/eppctl/internal/core/chat/jinja2"
)

// dsReminder is a word of DeepSeek-V4's chats alone.
const dsReminder = "<｜latest_reminder｜>"

// dsTasks are the words by which DeepSeek-V4 is given small tasks of its own.
var dsTasks = map[string]string{
	"action": "<｜action｜>", "query": "<｜query｜>", "authority": "<｜authority｜>", "domain": "<｜domain｜>", "title": "<｜title｜>", "read_url": "<｜read_url｜>",
}

// deepseekV4 is a chat as vLLM encodes it in the mode deepseek_v4 (0.33.0,
// tokenizers/deepseek_v4.py, after the encoder that DeepSeek published with the model).
type deepseekV4 struct {
	turns    []dsTurn
	thinking bool
	drops    bool           // thoughts before the last user's message
	effort   string         // what is said of it in front
	lastUser int            // index of the last turn of a user or developer, -1 = none
	order    map[string]int // of the latest calls, by id
	b        strings.Builder
}

// dsTurn is a message: what follows each other of a user and of functions is one.
type dsTurn struct {
	role    string
	message jinja2.Value
	content string
	blocks  []dsBlock // of a user
	task    string
}

// dsBlock is what a user says, or what a function gave.
type dsBlock struct {
	text   string
	result bool
	call   string // id of the call that the result answers
}

// encodeDeepSeekV4 writes the prompt of prepared messages. It always ends where the
// engine's does, whatever add_generation_prompt says.
func encodeDeepSeekV4(messages []jinja2.Value, vars map[string]jinja2.Value) (string, error) {
	c := &deepseekV4{order: map[string]int{}}
	if err := c.settle(vars); err != nil {
		return "", err
	}
	if err := c.read(withTools(messages, vars["tools"])); err != nil {
		return "", err
	}
	c.drops = c.drops && !slices.ContainsFunc(c.turns, func(t dsTurn) bool { return bringsTools(t.message) })
	if c.thinking && c.drops {
		c.dropOthers()
	}
	c.lastUser = c.findLastUser()
	c.b.WriteString(dsBegin)
	for i := range c.turns {
		if i == 0 && c.thinking {
			c.b.WriteString(dsEfforts[c.effort])
		}
		if err := c.turn(i); err != nil {
			return "", err
		}
		if err := c.opens(i); err != nil {
			return "", err
		}
	}
	return c.b.String(), nil
}

// settle reads what the request says of thinking, which is on unless it is said to be off.
func (c *deepseekV4) settle(vars map[string]jinja2.Value) error {
	on, given, err := thinks(vars)
	if err != nil {
		return err
	}
	c.thinking = on || !given
	drops, given, err := boolVar(vars, "drop_thinking")
	c.drops = drops || !given
	c.effort = "high"
	if effort := vars["reasoning_effort"]; jinja2.IsText(effort) {
		switch effort.AsString() {
		case "none":
			c.thinking = false
		case "max":
			c.effort = "max"
		case "low", "minimal", "medium":
			c.effort = "low"
		}
	}
	return err
}

// withTools gives tools to the first system message, or to one of their own in front.
func withTools(messages []jinja2.Value, tools jinja2.Value) []jinja2.Value {
	if !tools.IsList() || tools.AsList().Len() == 0 {
		return messages
	}
	system := jinja2.Dict()
	at := slices.IndexFunc(messages, func(m jinja2.Value) bool { return isText(member(m, "role"), "system") })
	if at < 0 {
		jinja2.Put(system, "role", jinja2.String("system"))
		messages = append([]jinja2.Value{system}, messages...)
	} else {
		for _, key := range messages[at].AsDict().Keys {
			jinja2.Put(system, key, member(messages[at], key))
		}
		messages = slices.Clone(messages)
		messages[at] = system
	}
	jinja2.Put(system, "tools", tools)
	return messages
}

func bringsTools(m jinja2.Value) bool {
	tools := member(m, "tools")
	return !tools.IsNone() && (!tools.IsList() || tools.AsList().Len() > 0)
}

// read makes turns of the messages: functions' results are blocks of a user's turn, in the
// order of the calls that they answer.
func (c *deepseekV4) read(messages []jinja2.Value) error {
	for _, m := range messages {
		t := dsTurn{role: text(m, "role"), message: m, task: text(m, "task")}
		if jinja2.IsText(member(m, "task")) && t.task == "" {
			return unrenderable("a task without a name")
		}
		var err error
		if t.content, err = flat(member(m, "content")); err != nil {
			return err
		}
		switch t.role {
		case "tool":
			c.say(dsTurn{role: "user"}, dsBlock{text: t.content, result: true, call: text(m, "tool_call_id")}, true)
		case "user":
			c.say(t, dsBlock{text: t.content}, false)
		default:
			c.sortResults()
			c.turns = append(c.turns, t)
		}
		if calls := member(m, "tool_calls"); t.role == "assistant" && calls.IsList() && calls.AsList().Len() > 0 {
			clear(c.order)
			for i, call := range calls.AsList().Items {
				if id := text(call, "id"); id != "" {
					c.order[id] = i
				}
			}
		}
	}
	c.sortResults()
	return nil
}

// say adds a block to the user's turn that is under way, or begins one. A text begins one
// behind a task, and a result does not.
func (c *deepseekV4) say(t dsTurn, b dsBlock, result bool) {
	if n := len(c.turns); n > 0 && c.turns[n-1].role == "user" && (result || c.turns[n-1].task == "") {
		c.turns[n-1].blocks = append(c.turns[n-1].blocks, b)
		return
	}
	c.sortResults()
	t.blocks = []dsBlock{b}
	c.turns = append(c.turns, t)
}

// sortResults puts the results of the last turn into the order of the calls; those of no
// known call count as the first's.
func (c *deepseekV4) sortResults() {
	n := len(c.turns)
	if n == 0 || len(c.order) == 0 {
		return
	}
	blocks := c.turns[n-1].blocks
	var results []dsBlock
	for _, b := range blocks {
		if b.result {
			results = append(results, b)
		}
	}
	slices.SortStableFunc(results, func(a, b dsBlock) int { return c.order[a.call] - c.order[b.call] })
	for i := range blocks {
		if blocks[i].result {
			blocks[i], results = results[0], results[1:]
		}
	}
}

// flat is the text of a content, part by part.
func flat(content jinja2.Value) (string, error) {
	if !content.IsList() {
		if jinja2.IsText(content) {
			return content.AsString(), nil
		}
		return "", nil
	}
	parts := make([]string, 0, content.AsList().Len())
	for _, part := range content.AsList().Items {
		if !isText(member(part, "type"), "text") {
			return "", unrenderable("a content part that is no text, for a model without a template")
		}
		parts = append(parts, text(part, "text"))
	}
	return strings.Join(parts, "\n\n"), nil
}

func (c *deepseekV4) findLastUser() int {
	i := len(c.turns) - 1
	for i >= 0 && c.turns[i].role != "user" && c.turns[i].role != "developer" {
		i--
	}
	return i
}

// dropOthers leaves out what only a thought would have made use of: before the last user's
// message, what developers and unknown roles say.
func (c *deepseekV4) dropOthers() {
	last := c.findLastUser()
	kept := c.turns[:0]
	for i, t := range c.turns {
		switch t.role {
		case "user", "system", "assistant", "latest_reminder", "direct_search_results":
			kept = append(kept, t)
		default:
			if i >= last {
				kept = append(kept, t)
			}
		}
	}
	c.turns = kept
}

// turn writes one turn.
func (c *deepseekV4) turn(i int) error {
	t := &c.turns[i]
	switch t.role {
	case "system":
		c.b.WriteString(t.content)
		return c.tools(t.message)
	case "developer":
		if t.content == "" {
			return rejected("a developer's message is empty")
		}
		c.b.WriteString(dsUser + t.content)
		return c.tools(t.message)
	case "user":
		c.b.WriteString(dsUser)
		for n, b := range t.blocks {
			if n > 0 {
				c.b.WriteString("\n\n")
			}
			if b.result {
				c.b.WriteString("<tool_result>" + b.text + "</tool_result>")
			} else {
				c.b.WriteString(b.text)
			}
		}
	case "latest_reminder":
		c.b.WriteString(dsReminder + t.content)
	case "assistant":
		return c.assistant(i, t)
	default:
		return rejected("the role of a message is none of those known")
	}
	return nil
}

// assistant writes what the model said. Its thought is left out before the last user's
// message, and behind a task there was none.
func (c *deepseekV4) assistant(i int, t *dsTurn) error {
	ofTask := i > 0 && c.turns[i-1].task != ""
	if c.thinking && !ofTask && (!c.drops || i > c.lastUser) {
		c.b.WriteString(text(t.message, "reasoning") + dsSpoken)
	}
	c.b.WriteString(t.content)
	if calls := member(t.message, "tool_calls"); calls.IsList() && calls.AsList().Len() > 0 {
		if err := writeCalls(&c.b, "tool_calls", calls.AsList().Items); err != nil {
			return err
		}
	}
	c.b.WriteString(dsEnd)
	return nil
}

// opens writes what opens the model's turn behind turn i, where it is the model's.
func (c *deepseekV4) opens(i int) error {
	t, last := &c.turns[i], i == len(c.turns)-1
	if !last && c.turns[i+1].role != "assistant" && c.turns[i+1].role != "latest_reminder" {
		return nil
	}
	if t.task != "" {
		word, known := dsTasks[t.task]
		if !known {
			return rejected("the task of a message is none of those known")
		}
		if t.task == "action" {
			c.answer(c.thinking)
		}
		c.b.WriteString(word)
		return nil
	}
	if t.role == "user" || t.role == "developer" || t.role == "system" && (last || c.turns[i+1].role == "assistant") {
		c.answer(c.thinking && (!c.drops || i >= c.lastUser))
	}
	return nil
}

func (c *deepseekV4) answer(thinks bool) {
	c.b.WriteString(dsAssistant)
	if thinks {
		c.b.WriteString(dsThinking)
	} else {
		c.b.WriteString(dsSpoken)
	}
}

// tools writes the functions that a message brings.
func (c *deepseekV4) tools(m jinja2.Value) error {
	schemas, err := functionSchemas(m)
	if schemas != "" {
		c.b.WriteString("\n\n" + strings.ReplaceAll(dsTools4, "{schemas}", schemas))
	}
	return err
}

// dsEfforts is what the model is told about how hard to think. The words are part of the
// model's format (DeepSeek-V4, MIT licence), as vLLM has them.
var dsEfforts = map[string]string{
	"low": "",
	"high": "Reasoning Effort: Absolute maximum with no shortcuts permitted.\n" +
		"You MUST be very thorough in your thinking and comprehensively decompose the problem to resolve the root cause, rigorously stress-testing your logic against all potential paths, edge cases, and adversarial scenarios.\n" +
		"Explicitly write out your entire deliberation process, documenting every intermediate step, considered alternative, and rejected hypothesis to ensure absolutely no assumption is left unchecked.\n" +
		"\n",
	"max": "Reasoning Effort: Beyond maximum — exhaustive, relentless, and uncompromising.\n" +
		"You MUST reason with the utmost depth and rigor, leaving absolutely nothing to chance: exhaustively decompose the problem into its most fundamental components, trace every causal chain to its root, and resolve the underlying cause rather than any surface symptom.\n" +
		"Do not stop reasoning until you have independently verified the solution from multiple angles and are certain that no assumption remains unchecked and no error remains undiscovered.\n" +
		"\n",
}

// dsTools4 is what it is told about functions, likewise.
const dsTools4 = "## Tools\n" +
	"\n" +
	"You have access to a set of tools to help answer the user's question. You can invoke tools by writing a \"<｜DSML｜tool_calls>\" block like the following:\n" +
	"\n" +
	"<｜DSML｜tool_calls>\n" +
	"<｜DSML｜invoke name=\"$TOOL_NAME\">\n" +
	"<｜DSML｜parameter name=\"$PARAMETER_NAME\" string=\"true|false\">$PARAMETER_VALUE</｜DSML｜parameter>\n" +
	"...\n" +
	"</｜DSML｜invoke>\n" +
	"<｜DSML｜invoke name=\"$TOOL_NAME2\">\n" +
	"...\n" +
	"</｜DSML｜invoke>\n" +
	"</｜DSML｜tool_calls>\n" +
	"\n" +
	"String parameters should be specified as is and set `string=\"true\"`. For all other types (numbers, booleans, arrays, objects), pass the value in JSON format and set `string=\"false\"`.\n" +
	"\n" +
	"If thinking_mode is enabled (triggered by <think>), you MUST output your complete reasoning inside <think>...</think> BEFORE any tool calls or final response.\n" +
	"\n" +
	"Otherwise, output directly after </think> with tool calls or final response.\n" +
	"\n" +
	"### Available Tool Schemas\n" +
	"\n" +
	"{schemas}\n" +
	"\n" +
	"You MUST strictly follow the above defined tool name and parameter schemas to invoke tool calls.\n"
