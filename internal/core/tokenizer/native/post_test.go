package native_test

import (
	"slices"
	"testing"
)

// TestPostProcessors: what is put around a text, as Hugging Face tokenizers do it and as
// it reads.
func TestPostProcessors(t *testing.T) {
	special := func(name string) object { return object{"SpecialToken": object{"id": name, "type_id": 0}} }
	seq := object{"Sequence": object{"id": "A", "type_id": 0}}
	tokens := object{"<s>": object{"id": "<s>", "ids": []int{7}, "tokens": []string{"<s>"}}, "</s>": object{"id": "</s>", "ids": []int{8, 9}, "tokens": []string{"a", "b"}}}
	template := func(single ...any) object {
		return object{"type": "TemplateProcessing", "single": single, "pair": []any{}, "special_tokens": tokens}
	}
	roberta := object{"type": "RobertaProcessing", "sep": []any{"</s>", 2}, "cls": []any{"<s>", 0}, "trim_offsets": true, "add_prefix_space": false}
	bert := object{"type": "BertProcessing", "sep": []any{"[SEP]", 3}, "cls": []any{"[CLS]", 4}}
	bytes := object{"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true}
	texts := append([]string{"", " ", "the", "<s>the</s>", "<s>", "</s></s>", "[CLS] a [SEP]"}, randomTexts(100)...)
	for name, c := range map[string]struct {
		post          any
		before, after []uint32
	}{
		"none":                  {nil, nil, nil},
		"bytes":                 {bytes, nil, nil},
		"template":              {template(special("<s>"), seq, special("</s>")), []uint32{7}, []uint32{8, 9}},
		"template, text alone":  {template(seq), nil, nil},
		"template, twice":       {template(special("</s>"), special("<s>"), seq, special("<s>"), special("<s>")), []uint32{8, 9, 7}, []uint32{7, 7}},
		"bert":                  {bert, []uint32{4}, []uint32{3}},
		"roberta":               {roberta, []uint32{0}, []uint32{2}},
		"sequence":              {sequence("processors", bytes, template(special("<s>"), seq)), []uint32{7}, nil},
		"around what is around": {sequence("processors", roberta, template(special("<s>"), seq, special("</s>"))), []uint32{7, 0}, []uint32{2, 8, 9}},
		"in parts":              {sequence("processors", sequence("processors", bert, roberta), sequence("processors", bytes)), []uint32{0, 4}, []uint32{3, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			o := object{"post_processor": c.post, "pre_tokenizer": byteLevel, "model": byteModel(), "added_tokens": give(byteModel(), added("<s>"), added("</s>"), added("[CLS]"))}
			compareObject(t, o, texts)
			tok := loadObject(t, o)
			plain := encode(t, tok, "the")
			got, err := tok.Encode("the", true)
			if err != nil || !slices.Equal(got, slices.Concat(c.before, plain, c.after)) {
				t.Errorf("%v %v", got, err)
			}
		})
	}
}
