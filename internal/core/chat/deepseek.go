package chat

import (
	"strings"

	"github.com/eppctl/eppctl/internal/core/chat/jinja2"
)

// The words of the chats of DeepSeek-V3.2 and V4.
const (
	dsBegin, dsEnd      = "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"
	dsUser, dsAssistant = "<｜User｜>", "<｜Assistant｜>"
	dsThinking          = "<think>"
	dsSpoken            = "</think>" // the thought is over, or there is none
)

// dsmlTag is a tag of the language in which these models call functions.
func dsmlTag(inside string) string { return "<｜DSML｜" + inside + ">" }

func dsmlEnd(name string) string { return "</｜DSML｜" + name + ">" }

// boolVar is a variable that is a boolean; null is as if it were not given. Python takes
// any value for one; who sends others is asked to be tokenized elsewhere.
func boolVar(vars map[string]jinja2.Value, name string) (is, given bool, err error) {
	v, given := vars[name]
	switch {
	case !given || v.IsNone():
		return false, given, nil
	case !v.IsBool():
		return false, true, unrenderable(name + " is not a boolean")
	}
	return v.AsBool(), true, nil
}

// thinks reports whether thinking is asked for, by either of its names.
func thinks(vars map[string]jinja2.Value) (is, given bool, err error) {
	for _, name := range []string{"thinking", "enable_thinking"} {
		one, said, err := boolVar(vars, name)
		if err != nil {
			return false, false, err
		}
		is, given = is || one, given || said
	}
	return is, given, nil
}

// writeCalls writes what functions a message calls, as a block of this name.
func writeCalls(b *strings.Builder, block string, calls []jinja2.Value) error {
	b.WriteString("\n\n" + dsmlTag(block))
	for _, call := range calls {
		f := member(call, "function")
		b.WriteString("\n" + dsmlTag(`invoke name="`+text(f, "name")+`"`) + "\n")
		arguments := member(f, "arguments")
		if !arguments.IsDict() {
			return rejected("the arguments of a call are no object")
		}
		for n, key := range arguments.AsDict().Keys {
			if n > 0 {
				b.WriteByte('\n')
			}
			if err := writeArgument(b, key, member(arguments, key)); err != nil {
				return err
			}
		}
		b.WriteString("\n" + dsmlEnd("invoke"))
	}
	b.WriteString("\n" + dsmlEnd(block))
	return nil
}

// writeArgument writes one argument: text as it is, anything else in JSON.
func writeArgument(b *strings.Builder, key string, v jinja2.Value) error {
	kind, value := "true", ""
	if jinja2.IsText(v) {
		value = v.AsString()
	} else {
		kind = "false"
		var err error
		if value, err = jinja2.DumpJSON(v, false); err != nil {
			return classify(err)
		}
	}
	b.WriteString(dsmlTag(`parameter name="`+key+`" string="`+kind+`"`) + value + dsmlEnd("parameter"))
	return nil
}

// functionSchemas are the functions that a message brings, in JSON, one a line; "" when it
// brings none.
func functionSchemas(m jinja2.Value) (string, error) {
	list := member(m, "tools")
	if list.IsNone() {
		return "", nil
	}
	if !list.IsList() {
		return "", rejected("tools is not a list")
	}
	lines := make([]string, 0, list.AsList().Len())
	for _, tool := range list.AsList().Items {
		if !tool.IsDict() {
			return "", rejected("a tool is not an object")
		}
		function, ok := jinja2.Get(tool, "function")
		if !ok {
			return "", rejected("a tool has no function")
		}
		line, err := jinja2.DumpJSON(function, false)
		if err != nil {
			return "", classify(err)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n"), nil
}
