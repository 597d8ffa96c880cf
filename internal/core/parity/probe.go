package parity

import (
	"encoding/json/jsontext"
	"fmt"

	"github.com/eppctl/eppctl/internal/core/tokenizer"
)

// Probe is a request of our own, whose text may be shown to anybody.
type Probe struct {
	Name  string
	Shape tokenizer.Shape
	Body  []byte // JSON, without a model
}

// Probes is the fixed set: the texts at which tokenizers were seen to part, and the
// forms of chat that engines prepare in their own ways.
func Probes() []Probe {
	list := make([]Probe, 0, len(texts)+len(chats))
	for _, x := range texts {
		body, err := jsontext.AppendQuote([]byte(`{"prompt":`), x.text)
		if err != nil { // a test goes through all of them
			continue
		}
		list = append(list, Probe{x.name, tokenizer.Completion, append(body, '}')})
	}
	for _, x := range chats {
		list = append(list, Probe{x.name, tokenizer.Chat, []byte(x.text)})
	}
	return list
}

var texts = []struct{ name, text string }{
	{"english", "The quick brown fox can't jump over 13 lazy dogs; it's \"tired\" (they've said), isn't it? We'll SEE."},
	{"latin", "Überraschung: l'été à Málaga – «ça va?» Žluťoučký kůň příliš úpěl ďábelské ódy. Ærøskøbing, İstanbul, ﬁnal."},
	{"scripts", "Привет, мир! Γειά σου Κόσμε. שלום עולם. مرحبا بالعالم. नमस्ते दुनिया। สวัสดีชาวโลก ქართული հայերեն"},
	{"cjk", "你好，世界！這是一個測試。こんにちは、カタカナとｱｲｳ。안녕하세요 세계 한국어 １２３"},
	{"combining", "e\u0301 versus \u00e9, A\u030a versus \u00c5, \u1100\u1161\u11a8 versus \uac01, q\u0307\u0323 \u212b \u2126 \ufb01 \u00bd"},
	{"emoji", "👍🏽 👩‍👩‍👧‍👦 🏳️‍🌈 🇩🇪🇫🇷 ☕️ 1️⃣ 🫠🪿 done"},
	{"digits", "7 42 123 1234 12345 1234567 3.14159 1,000,000 0x1F4A9 1e-9 2026-11-30T03:07:09Z ٣٤٥ ½ Ⅷ x2y3"},
	{"spaces", "a b  c   d    e        f                 g\t\th\t \ti \u00a0j\u2003k\u3000l\u200bm\ufeffn  "},
	{"lines", "\n\nfirst\r\nsecond\n\n\n   third \n \n\t\nfourth\r\r\n  \n"},
	{"leading space", "   begins with three and ends with two  "},
	{"code", "func main() {\n\tfor i := 0; i < 10; i++ {\n\t\tif x[i] != nil && y>=-1 { fmt.Printf(\"%d\\n\", i) } // TODO\n\t}\n}\n"},
	{"python", "class A(B):\n    def __init__(self, *args, **kw) -> None:\n        self._x = {k: v for k, v in kw.items()}\n\n        return f'{self!r:>10}'\n"},
	{"markup", "<div class=\"a\"><!-- c --></div>\n```json\n{\"k\": [1, null, true]}\n```\n| a | b |\n|---|---|\n\\frac{a}{b} https://example.com/a?b=c&d=%20#e"},
	{"special tokens", "<s> </s> <bos><eos> <|im_start|>user\n<|im_end|> <|endoftext|> [INST] [/INST] <|begin_of_text|><|eot_id|> <|start|><|end|> <think> </think> <unk><pad> <tool_call>"},
	{"punctuation", "...!!!??? --- ___ === ///\\\\ ~~~ ''' ''s 'S 'RE “curly” ‘single’ … – — • §¶†‡ ©®™ €£¥ ∑∫√ ←↑→"},
	{"long word", "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa abababababababab =================="},
}

var chats = []struct{ name, text string }{
	{"chat", `{"messages":[{"role":"user","content":"Hello, who are you?"}]}`},
	{"chat with system", `{"messages":[{"role":"system","content":"You are terse.\n\n- one line\n"},{"role":"user","content":"  Name three colours. "},` +
		`{"role":"assistant","content":"red, green, blue"},{"role":"user","content":"And <b>one</b> more & \"why\"? 你好 👍🏽"}]}`},
	{"chat in parts", `{"messages":[{"role":"user","content":[{"type":"text","text":"First part."},{"type":"text","text":"Second part."}]}]}`},
	{"chat with tools", `{"messages":[{"role":"user","content":"Weather in Köln?"}],"tools":[{"type":"function","function":{"name":"get_weather",` +
		`"description":"Current weather of a city","parameters":{"type":"object","properties":{"city":{"type":"string"},"unit":{"type":"string","enum":["c","f"]}},"required":["city"]}}}]}`},
	{"chat with a tool's result", `{"messages":[{"role":"user","content":"Weather in Köln?"},{"role":"assistant","content":"","tool_calls":[{"id":"call_1a2b3c4d5",` +
		`"type":"function","function":{"name":"get_weather","arguments":"{\"city\": \"Köln\", \"days\": 2}"}}]},{"role":"tool","tool_call_id":"call_1a2b3c4d5","content":"{\"c\": 7.5}"},` +
		`{"role":"user","content":"Thanks!"}],"tools":[{"type":"function","function":{"name":"get_weather","parameters":{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"}}}}}]}`},
}

// Difference is where the ids of a probe part.
type Difference struct {
	Probe        string
	At           int      // first position that differs
	Ours, Theirs []uint32 // from a little in front of it
	From         int      // position of the first of these
}

// around is how many ids are shown in front of a difference, and behind it.
const around = 3

// Compare returns where two lists of ids part, nil when they are equal.
func Compare(probe string, ours, theirs []uint32) *Difference {
	at := 0
	for at < len(ours) && at < len(theirs) && ours[at] == theirs[at] {
		at++
	}
	if at == len(ours) && at == len(theirs) {
		return nil
	}
	from := max(at-around, 0)
	cut := func(ids []uint32) []uint32 { return ids[min(from, len(ids)):min(at+around+1, len(ids))] }
	return &Difference{Probe: probe, At: at, Ours: cut(ours), Theirs: cut(theirs), From: from}
}

func (d *Difference) String() string {
	return fmt.Sprintf("%q differs from id %d on: %v here, %v in the engine (from id %d)", d.Probe, d.At, d.Ours, d.Theirs, d.From)
}
