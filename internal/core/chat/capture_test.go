package chat

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/testdata"
)

// decoder turns ids of a byte-level tokenizer back into text.
type decoder map[uint32]string

func readDecoder(tb testing.TB, path string) decoder {
	tb.Helper()
	var file struct {
		Model struct {
			Vocab map[string]uint32 `json:"vocab"`
		} `json:"model"`
		Added []struct {
			ID      uint32 `json:"id"`
			Content string `json:"content"`
		} `json:"added_tokens"`
	}
	if err := json.Unmarshal(readFile(tb, path), &file); err != nil {
		tb.Fatal(err)
	}
	// GPT-2's alphabet: printable bytes stand for themselves, the others for
	// the characters from 256 on.
	bytes := map[rune]byte{}
	next := rune(256)
	for b := range 256 {
		if b >= '!' && b <= '~' || b >= 0xa1 && b <= 0xac || b >= 0xae {
			bytes[rune(b)] = byte(b)
			continue
		}
		bytes[next] = byte(b)
		next++
	}
	d := decoder{}
	for token, id := range file.Model.Vocab {
		var b strings.Builder
		for _, c := range token {
			b.WriteByte(bytes[c])
		}
		d[id] = b.String()
	}
	for _, a := range file.Added {
		d[a.ID] = a.Content
	}
	return d
}

func (d decoder) text(ids []uint32) string {
	var b strings.Builder
	for _, id := range ids {
		b.WriteString(d[id])
	}
	return b.String()
}

// TestCapturedChats: the ids that engines used for captured chats, turned back
// into text, are the prompt.
func TestCapturedChats(t *testing.T) {
	seen := map[string]int{}
	for _, dir := range testdata.Dirs(t, "engines") {
		captures, err := filepath.Glob(filepath.Join(dir, "*", "*", "requests.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range captures {
			folder := filepath.Dir(path)
			model := "tiny-" + filepath.Base(folder)
			if model == "tiny-dp2" || model == "tiny-dialin" || model == "tiny-reannounce" || model == "tiny-gemma3" {
				model = "tiny-llama" // its tokenizer
			}
			vocabulary := testdata.Beside(t, dir, "engines", "models/"+model+"/tokenizer.json")
			if _, err := os.Stat(vocabulary); err != nil {
				t.Logf("%s: %s is not in the repository", folder, model) // package encode has tiny-qwen3's
				continue
			}
			engine := VLLM
			if strings.Contains(folder, "sglang") {
				engine = SGLang
			}
			r, err := New(Files{TokenizerConfig: readFile(t, testdata.Beside(t, dir, "engines", "models/"+model+"/tokenizer_config.json"))}, Options{Engine: engine})
			if err != nil {
				t.Fatal(err)
			}
			d := readDecoder(t, vocabulary)
			name := filepath.Base(filepath.Dir(folder)) + "/" + filepath.Base(folder)
			for i, line := range strings.Split(strings.TrimSpace(string(readFile(t, path))), "\n") {
				var req struct {
					Path   string          `json:"path"`
					Body   json.RawMessage `json:"body"`
					Status int             `json:"status"`
					IDs    json.RawMessage `json:"token_ids"`
				}
				if err := json.Unmarshal([]byte(line), &req); err != nil {
					t.Fatal(err)
				}
				if !strings.HasSuffix(req.Path, "/chat/completions") || req.Status != 200 || len(req.IDs) == 0 {
					continue
				}
				var ids []uint32
				if err := json.Unmarshal(req.IDs, &ids); err != nil {
					t.Fatal(err)
				}
				got, err := r.Render(context.Background(), req.Body, time.Time{})
				if err != nil {
					t.Errorf("%s request %d: %v", name, i, err)
					continue
				}
				if want := d.text(ids); got.Text != want {
					t.Errorf("%s request %d: got %q, the engine used %q", name, i, got.Text, want)
				}
				seen[name]++
			}
		}
	}
	t.Logf("chats whose prompt is the engine's: %v", seen)
	if seen["vllm-0.32.0/llama"] < 14 || seen["vllm-0.23.0/llama"] < 14 || seen["sglang-0.5.23/llama"] < 4 {
		t.Errorf("captures are missing: %v", seen)
	}
}
