package native_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/core/tokenizer/native"
)

func repeated(n int, o any) []any {
	list := make([]any, n)
	for i := range list {
		list[i] = o
	}
	return list
}

func nested(kind, member string, depth int) object {
	o := object{"type": "NFC"}
	for range depth {
		o = object{"type": kind, member: []any{o}}
	}
	return o
}

// TestHostileFilesAreRefused: what no model needs and what would take memory or time
// without end is an error when the file is loaded.
func TestHostileFilesAreRefused(t *testing.T) {
	token := object{"SpecialToken": object{"id": "s", "type_id": 0}}
	text := object{"Sequence": object{"id": "A", "type_id": 0}}
	tokens := object{"s": object{"id": "s", "ids": make([]int, 65), "tokens": []string{}}}
	around := object{"type": "TemplateProcessing", "single": []any{token, text}, "pair": []any{}, "special_tokens": tokens}
	few := object{"type": "RobertaProcessing", "sep": []any{"a", 2}, "cls": []any{"b", 0}, "trim_offsets": true, "add_prefix_space": false}
	for name, o := range map[string]object{
		"ids around a text":    {"post_processor": around},
		"ids around, in parts": {"post_processor": sequence("processors", repeated(65, few)...)},
		"normalizers":          {"normalizer": sequence("normalizers", repeated(65, object{"type": "NFC"})...)},
		"nested normalizers":   {"normalizer": nested("Sequence", "normalizers", 1000)},
		"steps":                {"pre_tokenizer": sequence("pretokenizers", repeated(65, object{"type": "WhitespaceSplit"})...)},
		"mark of blanks":       {"pre_tokenizer": object{"type": "Metaspace", "replacement": strings.Repeat("_", 1000)}},
		"replaced matches":     {"normalizer": object{"type": "Replace", "pattern": object{"Regex": "a"}, "content": strings.Repeat("a", 1000)}},
		"pattern":              {"normalizer": object{"type": "Replace", "pattern": object{"Regex": strings.Repeat("a", 5000)}, "content": ""}},
	} {
		o["model"] = byteModel()
		if _, err := native.LoadHuggingFace(marshal(t, o)); err == nil {
			t.Errorf("%s: loaded", name)
		}
	}
}

// TestTextsDoNotExplode: a normaliser or step that makes a text many times as long
// is an error before the text is made.
func TestTextsDoNotExplode(t *testing.T) {
	grow := func(from, to string) object {
		return object{"type": "Replace", "pattern": object{"String": from}, "content": to}
	}
	for name, o := range map[string]object{
		"at once":      {"normalizer": grow("a", strings.Repeat("a", 100_000))},
		"step by step": {"normalizer": sequence("normalizers", repeated(40, grow("a", "aaaa"))...)},
		"by matches":   {"normalizer": sequence("normalizers", repeated(40, object{"type": "Replace", "pattern": object{"Regex": "a"}, "content": "aaaa"})...)},
		"in front":     {"normalizer": object{"type": "Prepend", "prepend": strings.Repeat("a", 1000)}},
		"by steps": {"pre_tokenizer": sequence("pretokenizers", repeated(32,
			sequence("pretokenizers", object{"type": "Metaspace", "replacement": "_"}, object{"type": "Metaspace", "replacement": "-"}))...)},
	} {
		if o["pre_tokenizer"] == nil {
			o["pre_tokenizer"] = byteLevel
		}
		o["model"] = byteModel()
		tok := loadObject(t, o)
		if ids, err := tok.Encode(strings.Repeat("a ", 20), false); err == nil {
			t.Errorf("%s: %d ids", name, len(ids))
		}
	}
}

// TestUsualGrowth: the most that real normalisers make of a character passes.
func TestUsualGrowth(t *testing.T) {
	o := object{"normalizer": sequence("normalizers",
		object{"type": "NFKC"}, object{"type": "Prepend", "prepend": "▁"}, object{"type": "Replace", "pattern": object{"String": " "}, "content": "▁"},
	), "pre_tokenizer": byteLevel, "model": byteModel()}
	tok := loadObject(t, o)
	for _, s := range []string{"\ufdfa", "a", strings.Repeat("\ufdfa", 1000)} {
		if _, err := tok.Encode(s, false); err != nil {
			t.Errorf("%+q: %v", s[:1], err)
		}
	}
}

// TestEncodeStops: a call whose context has ended does not encode a long text.
func TestEncodeStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, o := range []object{components()["unknown pattern"], components()["metaspace first"]} {
		tok := loadObject(t, o)
		text := strings.Repeat("the ", 10_000)
		if _, err := tok.EncodeContext(ctx, text, true); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if _, _, err := native.NewCache(tok, 1<<20).EncodeContext(ctx, text, true); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if _, err := tok.Encode(text, true); err != nil { // nothing of the ended call is left
			t.Error(err)
		}
	}
}
