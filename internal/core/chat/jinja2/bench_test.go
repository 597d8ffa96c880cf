package jinja2

import (
	"context"
	"strings"
	"testing"

	"github.com/ardanlabs/jinja"
	"github.com/eppctl/eppctl/internal/testdata"
)

// longChat is a conversation of 41 messages and 120 kB.
func longChat() map[string]Value {
	text := strings.Repeat("The quick brown fox jumps over the lazy dog, again. ", 57) // 2964 bytes
	var messages []Value
	add := func(role string) {
		m := Dict()
		Put(m, "role", String(role))
		Put(m, "content", String(text))
		messages = append(messages, m)
	}
	add("system")
	for range 20 {
		add("user")
		add("assistant")
	}
	return map[string]Value{"messages": List(messages), "add_generation_prompt": Bool(true), "bos_token": String("<s>"), "eos_token": String("</s>"), "tools": None()}
}

// BenchmarkRender120kB renders a chat of 120 kB in 41 messages.
func BenchmarkRender120kB(b *testing.B) {
	vars := longChat()
	for _, name := range []string{"Qwen3-8B-Q8_0", "npm-qwen3", "Llama-3.2-1B-Instruct-GGUF", "GLM-5.2", "gpt-oss-20b-Q8_0", "Kimi-K3"} {
		source := testdata.Template(b, name)
		t, err := Compile(source)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name+"/library", func(b *testing.B) { // as it is, without Python's rules and without limits
			code, err := jinja.Compile(source)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := code.RenderValues(vars); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/ours", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := t.Render(context.Background(), Input{Vars: vars, Now: oracleTime}); err != nil {
					b.Fatal(err)
				}
			}
			r := t.take()
			r.now = oracleTime
			r.meter.reset(context.Background(), DefaultLimits)
			if _, err := t.run(r, vars); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(r.meter.steps), "steps")
			b.ReportMetric(float64(r.meter.bytes), "bytes-made")
		})
	}
}

// BenchmarkCompile reads a template of 17 kB.
func BenchmarkCompile(b *testing.B) {
	source := testdata.Template(b, "gpt-oss-20b-Q8_0")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Compile(source); err != nil {
			b.Fatal(err)
		}
	}
}
