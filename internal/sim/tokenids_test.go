package sim

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/tokenizer"
)

// TestReturnTokenIDs: the simulated vLLM tells the prompt's ids where vLLM does, whole
// and streamed, when it is asked; the simulated SGLang does not know the field.
func TestReturnTokenIDs(t *testing.T) {
	want := []uint32{11, 12, 13}
	chat := map[string]any{"messages": []map[string]string{{"role": "user", "content": "one two"}}}
	for _, kind := range []pod.Engine{pod.EngineVLLM, pod.EngineSGLang} {
		e := start(t, EngineOptions{Kind: kind})
		for path, body := range map[string]map[string]any{"/v1/completions": {"prompt": want}, "/v1/chat/completions": chat} {
			body["max_tokens"] = 2
			for _, ask := range []bool{false, true} {
				body["return_token_ids"] = ask
				body["stream"] = false
				status, out := post(t, e.URL()+path, body)
				ids, err := tokenizer.ParseGenerated(out, 1000)
				told := ask && kind == pod.EngineVLLM
				if status != 200 || told != (err == nil) || told && path == "/v1/completions" && !slices.Equal(ids, want) {
					t.Errorf("%v %s, asked %v: %d %v %v", kind, path, ask, status, ids, err)
				}
				body["stream"] = true
				_, stream := post(t, e.URL()+path, body)
				first, rest, _ := strings.Cut(strings.TrimPrefix(string(stream), "data: "), "\n")
				again, _ := tokenizer.ParseGenerated([]byte(first), 1000)
				if !json.Valid([]byte(first)) || !slices.Equal(again, ids) || strings.Contains(rest, "prompt_token_ids") {
					t.Errorf("%v %s, asked %v: the stream tells %v", kind, path, ask, again)
				}
			}
		}
	}
}
