package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/eppctl/eppctl/internal/sim"
)

// otherTemplate is no model's: its chats differ from any engine's from id 0 or 1 on.
const otherTemplate = "{% for m in messages %}other {{ m['role'] }}: {{ m['content'] }}\n{% endfor %}"

// question is a request of which serve makes the token ids itself, and what
// `explain --compare-engine` has to find.
type question struct {
	name, path, body string
	differs          bool // serve is told another template than the engine has
}

var questions = []question{
	{"chat", "/v1/chat/completions", `{"messages":[{"role":"system","content":"You are terse."},{"role":"user","content":"Name three colours, 你好 👍🏽."}]}`, false},
	{"completion", "/v1/completions", `{"prompt":"The quick brown fox can't jump over 13 lazy dogs."}`, false},
	{"completion without special tokens", "/v1/completions", `{"prompt":"The quick brown fox.","add_special_tokens":false}`, false},
	{"chat by another template", "/v1/chat/completions", `{"messages":[{"role":"user","content":"Name three colours."}]}`, true},
}

// compared is what explain said of one.
type compared struct {
	question
	exit, tokens, at int    // at: of the first id that differs, -1 = none does
	told             bool   // the message names that position
	by               string // the engine's interface
}

func (c compared) wrong() bool {
	if c.differs {
		return c.exit != 3 || c.at < 0 || !c.told
	}
	return c.exit != 0 || c.at >= 0
}

func (c compared) line() string {
	at, mark := "-", "ok, by "+c.by
	if c.at >= 0 {
		at = fmt.Sprint(c.at)
	}
	if c.wrong() {
		mark = "WRONG"
	}
	return fmt.Sprintf("  %-40s %7d %10d %9s  %s\n", c.name, c.tokens, c.exit, at, mark)
}

// compare starts serve with the model's own files, and with another template, and
// asks it and the engine for the ids of each question.
func (d *drive) compare(ctx context.Context, o options) (list []compared, err error) {
	d.say("\n"+header, "explain --compare-engine", "TOKENS", "EXIT CODE", "DIFFERS")
	template := filepath.Join(d.dir, "other.jinja")
	if err := os.WriteFile(template, []byte(otherTemplate), 0o600); err != nil {
		return nil, err
	}
	for _, setup := range []struct {
		name, more string
		differs    bool
	}{{"same", "", false}, {"other", fmt.Sprintf(", chat_template: %q", template), true}} {
		tokenizer := fmt.Sprintf("{source: %q, order: [native]%s}", filepath.Join(o.models, "tiny-llama"), setup.more)
		found, err := d.asking(ctx, o, setup.name, tokenizer, setup.differs)
		if err != nil {
			return nil, fmt.Errorf("explain --compare-engine: %w", err)
		}
		list = append(list, found...)
	}
	return list, nil
}

// asking runs one serve, and puts the questions to it that are for it.
func (d *drive) asking(ctx context.Context, o options, name, tokenizer string, differs bool) (list []compared, err error) {
	admin, config := filepath.Join(d.dir, name+".sock"), filepath.Join(d.dir, name+".yaml")
	text := fmt.Sprintf(`listen: {ext_proc: "127.0.0.1:0", health: "127.0.0.1:0", metrics: "127.0.0.1:0", admin: "unix:%s"}
pods:
- %s
models:
- {name: %q, default: true, tokenizer: %s}
`, admin, d.engine.entry(), modelName, tokenizer)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	serve, err := sim.StartProcess(filepath.Join(d.dir, name+".log"), o.eppctl, "serve", "--config", config)
	if err != nil {
		return nil, err
	}
	defer serve.Kill()
	ask := []string{"explain", "--addr", "unix:" + admin, "-o", "json"}
	if err := serve.Until(time.Minute, func() error {
		var x struct{ Tokenizer struct{ Provider string } }
		out, err := exec.CommandContext(ctx, o.eppctl, append(ask, "--prompt", "ready?")...).Output()
		if err == nil && (json.Unmarshal(out, &x) != nil || x.Tokenizer.Provider != "native") {
			err = fmt.Errorf("serve does not make token ids itself: they come from %q", x.Tokenizer.Provider)
		}
		return err
	}); err != nil {
		return nil, err
	}
	for _, q := range questions {
		if q.differs != differs {
			continue
		}
		cmd := exec.CommandContext(ctx, o.eppctl, append(ask, "-f", "-", "--path", q.path, "--compare-engine", "http://"+d.engine.addr())...)
		cmd.Stdin = strings.NewReader(q.body)
		c, err := outcome(q, cmd)
		if err != nil {
			return nil, err
		}
		d.say("%s", c.line())
		list = append(list, c)
	}
	return list, nil
}

// outcome runs a comparison and reads what it printed.
func outcome(q question, cmd *exec.Cmd) (compared, error) {
	var message bytes.Buffer
	cmd.Stderr = &message
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return compared{}, err
	}
	var x struct {
		Comparison *struct {
			By         string
			Tokens     int
			Difference *struct{ At int }
		}
	}
	if err := json.Unmarshal(out, &x); err != nil || x.Comparison == nil {
		return compared{}, fmt.Errorf("%s: nothing was compared: %s%s", q.name, out, &message)
	}
	c := compared{question: q, exit: cmd.ProcessState.ExitCode(), tokens: x.Comparison.Tokens, at: -1, by: x.Comparison.By}
	if x.Comparison.Difference != nil {
		c.at = x.Comparison.Difference.At
		c.told = strings.Contains(message.String(), fmt.Sprintf("from id %d on", c.at))
	}
	return c, nil
}
