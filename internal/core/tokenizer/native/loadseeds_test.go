package native_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/core/tokenizer/native"
	"github.com/eppctl/eppctl/internal/core/tokenizer/split"
)

// Models of a few entries each: a mutation then hits what matters, and few bytes are read
// for nothing. One of the byte alphabet makes tables of 20 MB whatever its size, so that few
// seeds have one.
const (
	wordLevel = `{"type":"WordLevel","vocab":{"a":0,"the":1},"unk_token":"a"}`
	wordPiece = `{"type":"WordPiece","vocab":{"[UNK]":0,"a":1,"##b":2},"unk_token":"[UNK]","continuing_subword_prefix":"##","max_input_chars_per_word":9}`
	charBPE   = `{"vocab":{"<unk>":0,"▁":1,"t":2,"h":3,"▁t":4,"<0x41>":5},"merges":["▁ t"],"unk_token":"<unk>","fuse_unk":true,"byte_fallback":true}`
	uniModel  = `{"type":"Unigram","vocab":[["<unk>",0],["▁",-1.5],["▁a",-2e0]],"unk_id":0,"byte_fallback":false}`
	byteBPE   = `{"type":"BPE","dropout":null,"end_of_word_suffix":"","merges":[["Ġ","t"]],"vocab":{"Ġ":0,"t":1,"Ġt":2,"中":3},"ignore_merges":true}`
	blankless = `{"type":"Metaspace","replacement":"▁","prepend_scheme":"first","split":false}`
)

// loadable are small files that load: each type of component, each way of the loader.
func loadable() (out []string) {
	file := func(member, value, model string) string {
		return fmt.Sprintf(`{"version":"1.0",%q:%s,"model":%s}`, member, value, model)
	}
	charsMap := base64.StdEncoding.EncodeToString(oneRule("b\x00", 0))
	for _, n := range []string{
		`null`, `{"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"NFD"},{"type":"NFKC"},{"type":"NFKD"}]}`,
		`{"type":"Lowercase"}`, `{"type":"StripAccents"}`, `{"type":"Nmt"}`, `{"type":"ByteLevel"}`,
		`{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,"strip_accents":null,"lowercase":true}`,
		`{"type":"Precompiled","precompiled_charsmap":"` + charsMap + `"}`,
		`{"type":"Strip","strip_left":true,"strip_right":true}`, `{"type":"Prepend","prepend":"a"}`,
		`{"type":"Replace","pattern":{"String":" "},"content":"_"}`, `{"type":"Replace","pattern":{"Regex":"[a-t]+"},"content":""}`,
	} {
		out = append(out, file("normalizer", n, wordLevel))
	}
	for _, p := range []string{
		`{"type":"Sequence","pretokenizers":[{"type":"Digits","individual_digits":true},{"type":"Digits"}]}`,
		`{"type":"Whitespace"}`, `{"type":"WhitespaceSplit"}`, `{"type":"UnicodeScripts"}`, `{"type":"BertPreTokenizer"}`,
		`{"type":"Punctuation","behavior":"Contiguous"}`, `{"type":"CharDelimiterSplit","delimiter":"é"}`, `{"type":"FixedLength","length":2}`,
		`{"type":"Metaspace","replacement":"_","add_prefix_space":false,"str_rep":"_"}`,
		`{"type":"Split","pattern":{"String":"a"},"behavior":"MergedWithNext","invert":true}`,
		`{"type":"Split","pattern":{"Regex":"\\p{L}+|(?i:'s)|\\s+(?!\\S)"},"behavior":"Isolated","invert":false}`,
		`{"type":"Split","pattern":{"Regex":"[^a]"},"behavior":"Removed","invert":true}`,
		`{"type":"Split","pattern":{"Regex":"x"},"behavior":"MergedWithPrevious"}`,
		fmt.Sprintf(`{"type":"Split","pattern":{"Regex":%q},"behavior":"Removed","invert":true}`, split.PatternGPT2),
	} {
		out = append(out, file("pre_tokenizer", p, wordLevel))
	}
	template := `{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"s","type_id":0}},{"Sequence":{"id":"A","type_id":0}},{"SpecialToken":{"id":"s","type_id":0}}],` +
		`"pair":[],"special_tokens":{"s":{"id":"s","ids":[0],"tokens":["a"]}}}`
	for _, p := range []string{
		template, `{"type":"BertProcessing","sep":["a",0],"cls":["a",1]}`,
		`{"type":"Sequence","processors":[{"type":"ByteLevel"},{"type":"RobertaProcessing","sep":["a",0],"cls":["a",1],"trim_offsets":true,"add_prefix_space":true},` + template + `]}`,
	} {
		out = append(out, file("post_processor", p, wordLevel))
	}
	for _, a := range []string{
		`[{"id":2,"content":"<a>"},{"id":3,"content":"<a>中"},{"id":0,"content":"a"},{"id":4,"content":""}]`,
		`[{"id":2,"content":"The","single_word":true,"lstrip":true,"rstrip":true,"normalized":true,"special":true}]`,
		`[{"id":2,"content":"<a>","normalized":true},{"id":3,"content":"a> "}]`,
		`[{"id":2,"content":"b"},{"id":3,"content":"c"},{"id":4,"content":"d"},{"id":5,"content":"e "},{"id":6,"content":"fg","lstrip":true}]`,
	} {
		plain := file("added_tokens", a, wordLevel)
		out = append(out, plain, `{"normalizer":{"type":"Lowercase"},`+plain[1:])
	}
	prepended := `{"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"▁"},{"type":"Replace","pattern":{"String":" "},"content":"▁"}]}`
	return append(out,
		file("decoder", `null`, wordPiece), file("truncation", `{"a":[1,"\"]"]}`, uniModel), file("padding", `null`, charBPE),
		file("pre_tokenizer", blankless, uniModel), file("pre_tokenizer", blankless, charBPE), file("normalizer", prepended, charBPE),
		`{"model":`+charBPE+`,"pre_tokenizer":{"type":"Split","pattern":{"String":" "},"behavior":"MergedWithPrevious"},"normalizer":{"type":"Replace","pattern":{"String":" "},"content":"▁"}}`,
		file("pre_tokenizer", `{"type":"ByteLevel","add_prefix_space":true,"use_regex":false}`, byteBPE),
		`{"model":{"merges":["#version: 0.2","a b","a b"],"vocab":{"a":0,"b":1,"ab":2}}}`,
		"{ \n\t\"model\" : {\"vocab\":{\"\\n\\t\\r\\b\\f\\\"\\/\\\\\\u00e9\\ud83d\\ude00\":7, \"\\ud7ff\":1},\n          \"merges\":[]}}",
		`{"model":{"vocab":{},"merges":[]}}`,
		`{"added_tokens":[{"id":1,"content":"▁"},{"id":3,"content":"b"}],"model":`+uniModel+`}`,
		`{"added_tokens":[{"id":3,"content":"中"}],"pre_tokenizer":{"type":"ByteLevel"},"model":`+byteBPE+`}`,
		`{"added_tokens":[{"id":6,"content":"b","normalized":true}],"normalizer":`+prepended+`,"model":`+charBPE+`}`,
		`{"normalizer":`+prepended+`,"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Whitespace"},{"type":"Split","pattern":{"Regex":"x"},"behavior":"Removed"}]},"model":`+charBPE+`}`,
		`{"pre_tokenizer":{"type":"Split","pattern":{"Regex":"x"},"behavior":"Removed"},"model":`+uniModel+`}`,
		`{"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"x"},"behavior":"Removed"},{"type":"ByteLevel"}]},"model":`+byteBPE[:len(byteBPE)-1]+`,"unk_token":"t"}}`,
		`{"pre_tokenizer":{"type":"ByteLevel"},"model":{"vocab":{"a":0,"b":1},"merges":["中 a","a 中"]}}`,
	)
}

// refused are small files that do not load: an error of each kind.
func refused() (out []string) {
	for _, s := range loadable() {
		if other := strings.Replace(s, `"type":`, `"x":1,"type":`, 1); other != s {
			out = append(out, other) // a member that is not known
		}
	}
	for _, n := range []string{
		`{}`, `7`, `{"type":"Martian"}`, `{"type":"Sequence","normalizers":[{"type":"Sequence","normalizers":[{}]}]}`, `{"type":"Prepend","prepend":""}`,
		`{"type":"Replace","pattern":{},"content":""}`, `{"type":"Replace","pattern":{"Regex":"a"},"content":"0123456789abcdefg"}`, `{"type":"Replace","pattern":{"Regex":"\\X"},"content":""}`,
		`{"type":"BertNormalizer","clean_text":true}`, `{"type":"Precompiled","precompiled_charsmap":"AAAA"}`, `{"type":"Precompiled","precompiled_charsmap":"BAAAAAAAAAA="}`,
		`{"type":"Sequence","normalizers":[` + strings.Repeat(`{"type":"NFC"},`, 64) + `{"type":"NFC"}]}`,
	} {
		out = append(out, `{"normalizer":`+n+`,"model":`+wordLevel+`}`)
	}
	for _, p := range []string{
		`{}`, `{"type":"Martian"}`, `{"type":"Sequence","pretokenizers":[{"type":"ByteLevel"},{"type":"Whitespace"}]}`, `{"type":"Punctuation","behavior":"x"}`,
		`{"type":"CharDelimiterSplit","delimiter":"ab"}`, `{"type":"FixedLength","length":0}`, `{"type":"Metaspace","replacement":"_","prepend_scheme":"x"}`, `{"type":"Metaspace","replacement":"ab"}`,
		`{"type":"Split","pattern":{"String":"a"},"behavior":"x"}`, `{"type":"Split","pattern":{"String":""},"behavior":"Removed"}`, `{"type":"Split","pattern":{"Regex":"(a"},"behavior":"Isolated"}`,
		`{"type":"Sequence","pretokenizers":[` + strings.Repeat(`{"type":"Whitespace"},`, 64) + `{"type":"Whitespace"}]}`,
	} {
		out = append(out, `{"pre_tokenizer":`+p+`,"model":`+wordLevel+`}`)
	}
	begun := `{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"s","type_id":0}},{"Sequence":{"id":"A","type_id":0}}],"pair":[],"special_tokens":{"s":{"id":"s","ids":[0],"tokens":["a"]}}}`
	for _, p := range []string{
		`{}`, `{"type":"Martian"}`, `{"type":"BertProcessing","sep":["a",0],"cls":["a"]}`, `{"type":"BertProcessing","sep":["a",0,1],"cls":["a",0]}`, `{"type":"BertProcessing","sep":["a",0],"cls":{}}`, `{"type":"Sequence","processors":[{}]}`,
		`{"type":"Sequence","processors":[` + begun + `,` + begun + `]}`,
		`{"type":"TemplateProcessing","single":[],"pair":[],"special_tokens":{}}`,
		`{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"s","type_id":0}}],"pair":[],"special_tokens":{}}`,
		`{"type":"TemplateProcessing","single":[{"Sequence":{"id":"B","type_id":0}}],"pair":[],"special_tokens":{}}`,
		`{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"s","type_id":0}}],"pair":[],"special_tokens":{"s":{"id":"s","ids":[0` + strings.Repeat(",0", 64) + `],"tokens":[]}}}`,
	} {
		out = append(out, `{"post_processor":`+p+`,"model":`+wordLevel+`}`)
	}
	return append(out, refusedModels...)
}

var refusedModels = []string{
	`{"model":{"vocab":{"a":0}}`, "{\"version\":\"" + strings.Repeat("x", 16), `{"model":{"type":"WordPiece","vocab":{"a":0},"unk_token":"b","max_input_chars_per_word":1}}`, `{"model":{"vocab":{"a`, `{"model":{"vocab":{"a\`, `{"model":{"vocab":{"a":x}}}`, `{"model":{"vocab":{"a":99999999999}}}`, `{"version":tru`, `{"version":{"a":"`,
	`{"model":{"type":7}}`, `{"model":{"vocab":[["a",0]],"type":"BPE"}}`, `{"model":{"vocab":[["a",0]],"type":"WordLevel"}}`, `{"model":{"vocab":{"a":0},"type":"Unigram"}}`, `{"added_tokens":7}`,
	``, `[]`, `{}`, `{"model":{}}`, `{"model":{"vocab":{"a":0},"merges":["a b"]}}`, `{"model":{"vocab":{"\ud800\u0061":4194305},"merges":[["a"`,
	`{"model":{"vocab":{"a":0},"vocab":{}}}`, `{"model":{"vocab":{"a":0},"merges":["ab"]}}`, `{"model":{"vocab":{"a":0,"b":0}}}`, `{"model":{"vocab":{"\x":0}}}`,
	`{"model":` + wordLevel + `,"model":{}}`, `{"pre_tokenizer":null,"pre_tokenizer":null,"model":{}}`, `{"x":1}`, `{"model":{"x":1}}`, `{"model":` + wordLevel + `}}`,
	`{"model":{"type":"WordLevel","vocab":{"a":0},"unk_token":"b"}}`, `{"model":{"type":"WordLevel","vocab":{"a":0}}}`, `{"model":{"type":"WordPiece","vocab":{"a":0},"unk_token":"a"}}`,
	`{"model":{"type":"Unigram","vocab":[["a",0]]}}`, `{"model":{"type":"Unigram","vocab":[["a"]]}}`, `{"model":{"type":"Martian","vocab":{"a":0}}}`,
	`{"model":{"vocab":{"a":0},"dropout":0.1}}`, `{"model":{"vocab":{"a":0},"end_of_word_suffix":"x"}}`, `{"model":{"vocab":{"a":0},"continuing_subword_prefix":"x"}}`,
	`{"model":{"vocab":{"a":0},"max_input_chars_per_word":1}}`, `{"model":{"vocab":{"a":0},"unk_token":"b","merges":[]}}`,
	`{"pre_tokenizer":{"type":"ByteLevel"},"model":{"vocab":{"a":0},"byte_fallback":true,"merges":[]}}`, `{"pre_tokenizer":{"type":"ByteLevel"},"model":` + uniModel + `}`,
	`{"pre_tokenizer":{"type":"ByteLevel"},"model":` + wordLevel + `}`, `{"pre_tokenizer":{},"model":{}}`, `{"normalizer":{"type":7},"model":` + wordLevel + `}`,
	`{"added_tokens":[{"id":9,"content":"b"}],"model":` + wordLevel + `}`, `{"added_tokens":[{"id":4294967295,"content":"b"}],"model":` + wordLevel + `}`,
	`{"added_tokens":[{"id":2,"content":"\u0301","normalized":true}],"normalizer":{"type":"StripAccents"},"model":` + wordLevel + `}`,
}

// TestLoadSeeds: what the fuzzing of the loader starts from is what it is meant to be.
func TestLoadSeeds(t *testing.T) {
	for _, s := range loadable() {
		if tok, err := native.LoadHuggingFace([]byte(s)); err != nil {
			t.Errorf("%s: %v", s, err)
		} else if _, err := tok.Encode("The <a> 中文 é\u0301 'sk 12\n", true); err != nil {
			t.Errorf("%s: encoding: %v", s, err)
		}
	}
	for _, s := range refused() {
		if _, err := native.LoadHuggingFace([]byte(s)); err == nil {
			t.Errorf("%s is not refused", s)
		}
	}
}
