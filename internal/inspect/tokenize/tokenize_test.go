package tokenize

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/eppctl/eppctl/internal/inspect"
	"github.com/eppctl/eppctl/internal/inspect/out"
	"github.com/eppctl/eppctl/internal/modelsource"
	"github.com/eppctl/eppctl/internal/testdata"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func command(tb testing.TB) Command {
	return Command{Model: filepath.Join(testdata.Dirs(tb, "engines")[0], "models", "tiny-llama"), Engine: "vllm", Input: "auto", Format: "table"}
}

func run(tb testing.TB, c Command, in string) (stdout, stderr string, err error) {
	tb.Helper()
	var o, e bytes.Buffer
	err = c.Run(context.Background(), &modelsource.Settings{Offline: true, Cache: tb.TempDir()}, out.NewStreams(strings.NewReader(in), &o, &e, nil))
	return o.String(), e.String(), err
}

func templateFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "chat.jinja")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestTimeZone: 26 hours lie between two zones, so that the date is never the same.
func TestTimeZone(t *testing.T) {
	seen := map[string]string{}
	for _, zone := range []string{"Etc/GMT+12", "Etc/GMT-14"} {
		c := command(t)
		c.ChatTemplate, c.TimeZone = templateFile(t, `{{ strftime_now('%d') }}`), zone
		stdout, stderr, err := run(t, c, `{"messages":[{"role":"user","content":"Block"}]}`)
		if err != nil || len(stdout) < 4 || !strings.Contains(stderr, "date") {
			t.Errorf("%q %q %v", stdout, stderr, err)
		}
		if other, ok := seen[stdout]; ok {
			t.Errorf("%s and %s have one date: %s", zone, other, stdout)
		}
		seen[stdout] = zone
	}
}

func TestRun(t *testing.T) {
	template := templateFile(t, `{% for m in messages %}{% for p in m.content %}{% if p is string %}{% if loop.first %}{{ m.content }}{{ p }}{% endif %}{% else %}{{ p.text }}{% endif %}{% endfor %}{% endfor %}{{ more }}`)
	for _, c := range []struct {
		name string
		set  func(*Command)
		in   string
		want string
		errs string // in stderr
		fail string // in the error
		kind inspect.Kind
	}{
		{name: "text", in: "Block barrel\n", want: "[0,37,346,280,299,264,79,202]\n"},
		{name: "text without specials", set: func(c *Command) { c.NoSpecial = true }, in: "Block barrel", want: "[37,346,280,299,264,79]\n"},
		{name: "a body that was cut", set: func(c *Command) { c.Count = true }, in: `{"prompt":"Block"`, want: "8\n", errs: "warn: stdin begins as a request body and is no JSON"},
		{name: "the same, meant as a text", set: func(c *Command) { c.Input, c.Count = "text", true }, in: `{"prompt":"Block"`, want: "8\n"},
		{name: "nothing", set: func(c *Command) { c.NoSpecial = true }, in: "", want: "[]\n"},
		{name: "strings", in: "\"Block\"\n\n\"Block\"", want: "[0,37,346]\n[0,37,346]\n"},
		{name: "a string taken for text", set: func(c *Command) { c.Input, c.Count = "text", true }, in: `"Block"`, want: "5\n"},
		{name: "bodies", set: func(c *Command) { c.Count = true }, in: `{"prompt":"Block"}` + "\n" + `{"messages":[{"role":"user","content":"Block"}]}`, want: "3\n14\n"},
		{name: "a byte order mark", set: func(c *Command) { c.Count = true }, in: "\ufeff{\n\"prompt\":\"Block\"}\r\n", want: "3\n"},
		{name: "the same before lines", in: "\ufeff\"Block\"\n{\"prompt\":[5]}\n", want: "[0,37,346]\n[5]\n"},
		{name: "bodies with ids", in: `{"prompt":[5,6,7]}` + "\n" + `{"prompt":[[5],[6]]}`, want: "[5,6,7]\n[5]\n[6]\n"},
		{name: "bodies with several texts", in: `{"prompt":["Block","Block barrel","B"]}` + "\n" + `"B"`, want: "[0,37,346]\n[0,37,346,280,299,264,79]\n[0,37]\n[0,37]\n"},
		{name: "objects of several", set: func(c *Command) { c.Format = "jsonl" }, in: `{"prompt":["Block","B"]}` + "\n" + `{"prompt":[[5],[6,7]]}` + "\n" + `{"prompt":["B"]}`,
			want: `{"line":1,"prompt":1,"count":3,"ids":[0,37,346]}` + "\n" + `{"line":1,"prompt":2,"count":2,"ids":[0,37]}` + "\n" +
				`{"line":2,"prompt":1,"count":1,"ids":[5]}` + "\n" + `{"line":2,"prompt":2,"count":2,"ids":[6,7]}` + "\n" + `{"line":3,"count":2,"ids":[0,37]}` + "\n"},
		{name: "pieces of several", set: func(c *Command) { c.Pieces, c.Count = true, true }, in: `{"prompt":["B","B"]}`, want: "0\t\"<|bos|>\"\n37\t\"B\"\n\n0\t\"<|bos|>\"\n37\t\"B\"\n\n"},
		{name: "a mixture", in: `{"prompt":["sesame",[5]]}`, fail: "no prompt that is a text or a list of texts", kind: inspect.Failed},
		{name: "ids of /generate", in: `{"input_ids":[5,6]}` + "\n" + `{"token_ids":[7],"sampling_params":{}}` + "\n" + `{"text":"Block","sampling_params":{}}`, want: "[5,6]\n[7]\n[0,37,346]\n"},
		{name: "an embedding's ids", set: func(c *Command) { c.API = "embeddings" }, in: `{"input":[9,8]}`, want: "[9,8]\n"},
		{name: "a body on several lines", set: func(c *Command) { c.Count = true }, in: "{\n \"messages\": [\n  {\"role\": \"user\", \"content\": \"Block\"}\n ]\n}\n", want: "14\n"},
		{name: "Anthropic's messages", set: func(c *Command) { c.API, c.Count = "messages", true }, in: `{"system":"Block","messages":[{"role":"user","content":"Block"}]}`, want: "24\n"},
		{name: "the chat that they are", set: func(c *Command) { c.Count = true }, in: `{"messages":[{"role":"system","content":"Block"},{"role":"user","content":"Block"}]}`, want: "24\n"},
		{name: "the same as a chat", set: func(c *Command) { c.API, c.Count = "chat", true }, in: `{"system":"Block","messages":[{"role":"user","content":"Block"}]}`, want: "14\n"},
		{name: "the same, not told", in: `{"system":"sesame","messages":[{"role":"user","content":"Block"}]}`, fail: "--api messages", kind: inspect.Failed},
		{name: "a response's input", set: func(c *Command) { c.API, c.Count = "responses", true }, in: `{"input":"Block"}`, want: "15\n"},
		{name: "the same, not told", in: `{"input":"sesame"}`, fail: "--api responses", kind: inspect.Failed},
		{name: "objects", set: func(c *Command) { c.Format = "jsonl" }, in: `"Block"`, want: `{"line":1,"count":3,"ids":[0,37,346]}` + "\n"},
		{name: "pieces", set: func(c *Command) { c.Pieces = true }, in: "Block é\n<|end|>", want: "0\t\"<|bos|>\"\n37\t\"B\"\n346\t\"lock\"\n224\t\" \"\n131\t\"\\xc3\"\n106\t\"\\xa9\"\n202\t\"\\n\"\n1\t\"<|end|>\"\n\n"},
		{name: "pieces of objects", set: func(c *Command) { c.Pieces, c.NoSpecial, c.Format = true, true, "jsonl" }, in: `"Block \"é"`,
			want: `{"line":1,"count":5,"ids":[37,346,497,131,106],"pieces":["B","lock"," \\\"","\\xc3","\\xa9"]}` + "\n"},
		{name: "embeddings", set: func(c *Command) { c.API, c.Count = "embeddings", true }, in: `{"input":["Block","B"]}` + "\n" + `{"messages":[{"role":"user","content":"Block"}]}`, want: "3\n2\n9\n"},
		{name: "a template of its own", set: func(c *Command) { c.ChatTemplate, c.Count = template, true }, in: `{"messages":[{"role":"user","content":"Block"}]}`, want: "2\n"},
		{name: "contents as text", set: func(c *Command) { c.ChatTemplate, c.ContentFormat = template, "string" }, in: `{"messages":[{"role":"user","content":"Block"}]}`, want: "[37,346,37]\n"},
		{name: "kwargs", set: func(c *Command) { c.ChatTemplate, c.Kwargs, c.Count = template, `{"more":"Block"}`, true }, in: `{"messages":[{"role":"user","content":"Block"}]}`, want: "4\n"},
		{name: "kwargs with NaN", set: func(c *Command) { c.ChatTemplate, c.Kwargs = template, `{"more":NaN}` }, in: `{"messages":[{"role":"user","content":[{"type":"text","text":"Block"}]}]}`, want: "[37,346,81,303]\n"},
		{name: "kwargs with no NaN", set: func(c *Command) { c.Kwargs = `{"more":-NaN}` }, fail: "--chat-template-kwargs", kind: inspect.Usage},
		{name: "bodies with NaN", in: `{"x":[NaN,-Infinity],"prompt":"Block"}` + "\n" + `{"x":Infinity,"prompt":[5,6]}` + "\n", want: "[0,37,346]\n[5,6]\n"},
		{name: "one on several lines", in: "{\"x\":\nNaN,\n\"prompt\":\"Block\"}\n", want: "[0,37,346]\n"},
		{name: "what only looks like NaN", in: "\"Block\"\n" + `{"prompt":"sesame","x":1NaN}`, want: "[0,37,346]\n", fail: "line 2 ", kind: inspect.Failed},
		{name: "NaN that an engine refuses", in: `{"prompt":"sesame","top_p":NaN}`, fail: "refuses", kind: inspect.Failed},
		{name: "NaN among ids", in: `{"prompt":[5,NaN]}`, fail: "line 1 ", kind: inspect.Failed},
		{name: "NaN for SGLang", set: func(c *Command) { c.Engine = "sglang" }, in: `{"prompt":"sesame","x":NaN}`, fail: "refuses", kind: inspect.Failed},
		{name: "kwargs of no kind", set: func(c *Command) { c.Kwargs = `[1]` }, fail: "--chat-template-kwargs", kind: inspect.Usage},
		{name: "no such template", set: func(c *Command) { c.ChatTemplate = "./none.jinja" }, fail: "none.jinja", kind: inspect.Usage},
		{name: "no such zone", set: func(c *Command) { c.TimeZone = "Mars/Olympus" }, fail: "Mars/Olympus", kind: inspect.Usage},
		{name: "a doubt", set: func(c *Command) { c.Engine, c.Count = "sglang", true }, in: `{"messages":[{"role":"user","content":[{"type":"text","text":"a"}]}]}`, want: "13\n", errs: "not verified"},
		{name: "a chat with an image", set: func(c *Command) { c.Count = true }, in: `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"sesame"}},{"type":"text","text":"a"}]}]}`, want: "2\n", errs: "end before the first image"},
		{name: "a broken line", in: "\"Block\"\n\"sesame\n\"Block\"\n", want: "[0,37,346]\n", fail: "line 2 ", kind: inspect.Failed},
		{name: "and going on", set: func(c *Command) { c.KeepGoing = true }, in: "\"Block\"\n\"sesame\n{\"sesame\":1}\n{\"prompt\":[1.5]}\n[1]\n\"\\ud800\"\n\"Block\"\n",
			want: "[0,37,346]\n[0,37,346]\n", errs: "line 6", fail: "tokenized: 5", kind: inspect.Incomplete},
		{name: "half a character", in: `"sesame \ud800"`, fail: "not a JSON string of Unicode", kind: inspect.Failed},
		{name: "half a character in a prompt", in: `{"prompt":"sesame \ud800"}`, fail: "not Unicode", kind: inspect.Failed},
		{name: "half a character in a chat", in: `{"messages":[{"role":"user","content":"sesame \ud800"}]}`, fail: "cannot be tokenized", kind: inspect.Failed},
		{name: "no UTF-8", in: "a\xff", fail: "not UTF-8", kind: inspect.Failed},
		{name: "no model", set: func(c *Command) { c.Model = "acme/none" }, fail: "not in the cache", kind: inspect.Usage},
		{name: "no folder", set: func(c *Command) { c.Model = "./none" }, fail: "no such folder", kind: inspect.Usage},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := command(t)
			if c.set != nil {
				c.set(&o)
			}
			stdout, stderr, err := run(t, o, c.in)
			if stdout != c.want || !strings.Contains(stderr, c.errs) || strings.Contains(stderr, "sesame") {
				t.Errorf("stdout %q, stderr %q; want %q, %q", stdout, stderr, c.want, c.errs)
			}
			e, _ := errors.AsType[*inspect.Error](err)
			if c.fail == "" && err != nil || c.fail != "" && (e == nil || e.Kind != c.kind || !strings.Contains(err.Error(), c.fail) || strings.Contains(err.Error(), "sesame")) {
				t.Errorf("%v", err)
			}
		})
	}
}

// A line is answered before the next one comes, and a signal ends the wait for it.
func TestStream(t *testing.T) {
	in, write := io.Pipe()
	var o testdata.Buffer
	ctx, cancel := context.WithCancel(context.Background())
	c, done := command(t), make(chan error)
	go func() {
		done <- c.Run(ctx, &modelsource.Settings{Offline: true}, out.NewStreams(in, &o, io.Discard, nil))
	}()
	for n := 1; n <= 3; n++ {
		if _, err := io.WriteString(write, "\"Block\"\n"); err != nil {
			t.Fatal(err)
		}
		for strings.Count(o.String(), "\n") < n {
			time.Sleep(time.Millisecond)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	write.Close()
}

// FuzzLine: no line ends in a panic.
func FuzzLine(f *testing.F) {
	f.Add([]byte(`{"messages":[]}`))
	f.Add([]byte(`"a\ud800"`))
	f.Add([]byte(`{"prompt":"a","x":[NaN,-Infinity]}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		if len(bytes.TrimSpace(line)) > 0 {
			for _, api := range APIs() {
				parseLine(line, api)
			}
		}
		isLine(line)
	})
}
