package native_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/core/tokenizer/native"
)

// fileOf is a tokenizer.json whose members stand in this order: the pre-tokenizer, then
// the model with those given.
func fileOf(pre string, members ...string) []byte {
	return fmt.Appendf(nil, `{"version":"1.0","added_tokens":[],"normalizer":null,"pre_tokenizer":%s,"model":{"type":"BPE",%s},"post_processor":null,"decoder":null}`,
		pre, strings.Join(members, ","))
}

func member(t *testing.T, name string, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%q:%s", name, b)
}

const bytesAlone = `{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":false}`

// TestMergeLists: merges in any order and place give the ids of the engines' library. Pairs
// listed twice have their last rank there.
func TestMergeLists(t *testing.T) {
	model := byteModel()
	vocab := member(t, "vocab", model["vocab"])
	merges := model["merges"].([][2]string)
	listed := member(t, "merges", merges)

	r := rand.New(rand.NewPCG(1, 2))
	var repeated [][2]string // within a product's merges and behind others
	for _, m := range merges {
		repeated = append(repeated, m)
		for range r.IntN(3) {
			repeated = append(repeated, merges[r.IntN(len(merges))])
		}
	}
	lines := []string{"#version: 0.2"}
	for _, m := range merges {
		lines = append(lines, m[0]+" "+m[1])
	}
	lines = append(lines, "#versions t")

	for name, file := range map[string][]byte{
		"twice in all":        fileOf(bytesAlone, vocab, member(t, "merges", repeated)),
		"before vocabulary":   fileOf(bytesAlone, listed, vocab),
		"lines with a header": fileOf(bytesAlone, vocab, member(t, "merges", lines)),
		"escaped type":        fileOf(strings.Replace(bytesAlone, "Byte", `\u0042yte`, 1), vocab, listed),
		"escaped Hangul before a pair": fileOf("null", `"vocab":{"\ud55c":0,"\uD83D\uDE00":1,"\ud55c\ud83d\ude00":2}`,
			`"merges":[["\ud55c","\ud83d\ude00"]]`),
		"type in a pattern": fileOf(`{"type":"Split","pattern":{"String":"ByteLevel"},"behavior":"Isolated","invert":false}`,
			`"unk_token":"the","vocab":{"the":0,"Ġ":1,"x":2,"y":3,"Ġx":4}`, `"merges":["Ġ x"]`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tok, err := native.LoadHuggingFace(file)
			if err != nil {
				t.Fatal(err)
			}
			at := filepath.Join(t.TempDir(), "tokenizer.json")
			if err := os.WriteFile(at, file, 0o600); err != nil {
				t.Fatal(err)
			}
			texts := []string{"", "x yĠxx", "the world", "한😀한한😀😀"}
			r := rand.New(rand.NewPCG(3, 4))
			for range 400 {
				var b strings.Builder
				for range 1 + r.IntN(12) {
					b.WriteString([]string{words[r.IntN(len(words))], " ", "t", "h", "e", "中", "x"}[r.IntN(7)])
				}
				texts = append(texts, b.String())
			}
			compare(t, tok, newOracleOf(t, "hf", at), texts)
		})
	}
}

// TestTwoVocabularies: of which of the two the merges are is not guessed.
func TestTwoVocabularies(t *testing.T) {
	file := fileOf("null", `"vocab":{"a":0,"b":1,"ab":2}`, `"merges":["a b"]`, `"vocab":{"b":0,"a":1,"ab":2}`)
	if _, err := native.LoadHuggingFace(file); err == nil || !strings.Contains(err.Error(), "second vocab") {
		t.Error(err)
	}
}
