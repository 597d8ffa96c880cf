package native_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/eppctl/eppctl/internal/core/tokenizer/native"
)

// Messages and fields of sentencepiece_model.proto.
const (
	piece, trainer, normalizer = 1, 2, 3
	bosID, byteFallback        = 41, 35
)

// changed is a real model with one field set otherwise: of a field that comes twice
// the last value counts.
func changed(t *testing.T, message, field protowire.Number, v uint64) []byte {
	t.Helper()
	sub := protowire.AppendVarint(protowire.AppendTag(nil, field, protowire.VarintType), v)
	b := protowire.AppendTag(unpack(t, vocabularies["mistral_v3"].file), message, protowire.BytesType)
	return protowire.AppendBytes(b, sub)
}

// withPiece is a real model with one more piece.
func withPiece(t *testing.T, text string, kind uint64) []byte {
	t.Helper()
	return appendPiece(unpack(t, vocabularies["mistral_v3"].file), text, kind)
}

func appendPiece(model []byte, text string, kind uint64) []byte {
	sub := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), text)
	sub = protowire.AppendVarint(protowire.AppendTag(sub, 3, protowire.VarintType), kind)
	return protowire.AppendBytes(protowire.AppendTag(model, piece, protowire.BytesType), sub)
}

// small is a model of a type with five pieces.
func small(kind uint64) []byte {
	var b []byte
	for i, text := range []string{"<unk>", "<s>", "\u2581The", "a>", "\u4e2d"} {
		b = appendPiece(b, text, []uint64{2, 3, 1, 4, 1}[i])
	}
	sub := protowire.AppendVarint(protowire.AppendTag(nil, 3, protowire.VarintType), kind)
	return protowire.AppendBytes(protowire.AppendTag(b, trainer, protowire.BytesType), sub)
}

// TestSentencePieceRefuses: what a model asks for and is not built is refused by name,
// and what the library itself refuses is too.
func TestSentencePieceRefuses(t *testing.T) {
	_, noBytes := trained(t, object{"model_type": "bpe"})
	broken := protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), []byte{1})
	for _, c := range []struct {
		name string
		file []byte
	}{
		{"model_type 5", changed(t, trainer, 3, 5)},
		{"BPE without byte_fallback", noBytes},
		{"treat_whitespace_as_suffix", changed(t, trainer, 24, 1)},
		{"precompiled_charsmap", protowire.AppendBytes(protowire.AppendTag(unpack(t, vocabularies["mistral_v3"].file), normalizer, protowire.BytesType), broken)},
		{"of type 5", withPiece(t, "nowhere", 5)},
		{"of type 7", withPiece(t, "new", 7)},
		{"piece 32768 is empty", withPiece(t, "", 1)},
		{"zero byte", withPiece(t, "a\x00b", 1)},
		{"given twice", withPiece(t, "</s>", 3)},
		{"2 pieces for what is unknown", withPiece(t, "<nowhere>", 2)},
		{"byte piece 32768", withPiece(t, "<0x1>", 6)},
		{"byte_fallback false", changed(t, trainer, byteFallback, 0)},
		{"bos_id 1000000", changed(t, trainer, bosID, 1_000_000)},
	} {
		if _, err := native.LoadSentencePiece(c.file); err == nil || !strings.Contains(err.Error(), c.name) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestSentencePieceWithoutBOS: a bos_id of -1 puts nothing in front.
func TestSentencePieceWithoutBOS(t *testing.T) {
	const text = "Hello 世界"
	tok, err := native.LoadSentencePiece(changed(t, trainer, bosID, ^uint64(0)))
	if err != nil {
		t.Fatal(err)
	}
	got, err := tok.Encode(text, true)
	if want := encode(t, load(t, "mistral_v3"), text); err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
}

// TestTekkenRefuses: a setting that is not known, and special tokens among which the
// one to put in front is missing.
func TestTekkenRefuses(t *testing.T) {
	const entry = `"vocab":[{"rank":0,"token_bytes":"AA==","token_str":null}]`
	for name, file := range map[string]string{
		"new_setting":               `{"config":{"pattern":"\\s+","default_vocab_size":2,"default_num_special_tokens":1,"new_setting":1},` + entry + `}`,
		"new_member":                `{"config":{"pattern":"\\s+","default_vocab_size":2,"default_num_special_tokens":1},"new_member":1,` + entry + `}`,
		"special_tokens without <s": `{"config":{"pattern":"\\s+","default_vocab_size":2,"default_num_special_tokens":1},"special_tokens":[{"rank":0,"token_str":"<unk>"}],` + entry + `}`,
		"no split pattern":          `{"config":{"default_vocab_size":257,"default_num_special_tokens":1},` + entry + `}`,
	} {
		if _, err := native.LoadTekken([]byte(file)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// trained is a model made by testdata/train.py, with a field of its normaliser set.
func trained(t testing.TB, options object, fields ...[2]uint64) (file string, b []byte) {
	t.Helper()
	o, err := json.Marshal(options)
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "tokenizer.model")
	if out, err := exec.Command("python3", "testdata/train.py", file, string(o)).CombinedOutput(); err != nil {
		t.Fatalf("%v (is PYTHONPATH set to what scripts/tokenizers.sh prints?)\n%s", err, out)
	}
	if b, err = os.ReadFile(file); err != nil {
		t.Fatal(err)
	}
	for _, f := range fields {
		sub := protowire.AppendVarint(protowire.AppendTag(nil, protowire.Number(f[0]), protowire.VarintType), f[1])
		b = protowire.AppendBytes(protowire.AppendTag(b, normalizer, protowire.BytesType), sub)
	}
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return file, b
}

// TestSentencePieceNormalizers holds models with every setting of the normaliser
// against SentencePiece, over every character and random text.
func TestSentencePieceNormalizers(t *testing.T) {
	const dummy, extra, escape = 3, 4, 5
	texts := append(randomTexts(1500), everyIn(normalizerContexts)...)
	texts = append(texts, beginnings...)
	for _, s := range beginnings {
		texts = append(texts, s+" ", s+"\u2581", s+" \u2581 ", "  "+s+"  a", s+"[a]", "[a] "+s, s+"\u3000\u00a0")
	}
	for name, c := range map[string]struct {
		options object
		fields  [][2]uint64
	}{
		"nmt_nfkc":                  {object{}, nil},
		"nmt_nfkc_cf":               {object{"normalization_rule_name": "nmt_nfkc_cf"}, nil},
		"nfkc":                      {object{"normalization_rule_name": "nfkc"}, nil},
		"identity, extra blanks":    {object{"normalization_rule_name": "identity"}, [][2]uint64{{extra, 1}}},
		"nmt_nfkc, blanks kept":     {object{}, [][2]uint64{{extra, 0}}},
		"nmt_nfkc, no prefix":       {object{}, [][2]uint64{{dummy, 0}}},
		"blanks not escaped":        {object{}, [][2]uint64{{escape, 0}}},
		"identity, not escaped":     {object{"normalization_rule_name": "identity"}, [][2]uint64{{escape, 0}, {extra, 0}}},
		"pieces of the user":        {object{"user_defined_symbols": []string{"[a]", "\ufb01", "fi", "x", "a\u3000b"}}, nil},
		"pieces, extra blanks kept": {object{"user_defined_symbols": []string{"[a]", "\ufb01"}}, [][2]uint64{{extra, 0}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.options["model_type"], c.options["byte_fallback"], c.options["vocab_size"] = "bpe", true, 420
			file, b := trained(t, c.options, c.fields...)
			tok, err := native.LoadSentencePiece(b)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, tok, newOracleOf(t, "spm", file), texts)
		})
	}
}
