package encode_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/core/chat"
	"github.com/eppctl/eppctl/internal/core/encode"
	"github.com/eppctl/eppctl/internal/core/tokenizer"
	"github.com/eppctl/eppctl/internal/core/tokenizer/native"
	"github.com/eppctl/eppctl/internal/testdata"
)

// TestForms: bodies of /v1/messages and /v1/responses give the ids of the text that
// a real vLLM tokenized for them (testdata/engines/README.md), with the special
// tokens in front where it put them.
func TestForms(t *testing.T) {
	dir := testdata.Dirs(t, "engines")[0]
	var captured struct {
		Cases []struct {
			Name, Path string
			Body       json.RawMessage
		}
		Templates map[string]struct {
			Renders []struct {
				Status int
				Text   string
			}
		}
	}
	testdata.GzipJSON(t, filepath.Join(dir, "chat-forms", "chat-forms.json.gz"), &captured)
	model := filepath.Join(dir, "models", "tiny-llama")
	own, err := native.LoadHuggingFace(read(t, filepath.Join(model, "tokenizer.json")))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[tokenizer.Shape]int{}
	for name, template := range captured.Templates {
		files := chat.Files{TokenizerConfig: read(t, filepath.Join(model, "tokenizer_config.json"))}
		// The render server that was captured takes no thinking for the effort none.
		r, err := chat.New(files, chat.Options{Template: testdata.Template(t, name), DisabledEffort: "none"})
		if err != nil {
			t.Fatal(err)
		}
		m := encode.New(encode.Options{Tokenizer: own, Chat: r})
		for i, want := range template.Renders {
			c := captured.Cases[i]
			if want.Status != 200 || want.Text == "" {
				continue
			}
			shape := tokenizer.Responses
			if c.Path == "/v1/messages" {
				shape = tokenizer.Messages
			}
			ids, _, err := m.EncodeText(t.Context(), want.Text, false)
			if err != nil {
				t.Fatal(err)
			}
			got, err := m.Tokenize(t.Context(), tokenizer.Text{Shape: shape, Body: c.Body})
			switch {
			case err != nil && strings.Contains(err.Error(), "previous_response_id"), got.Cut >= 0: // an engine's memory; an image
			case err != nil || !slices.Equal(got.IDs, ids):
				t.Errorf("%s, %s %s: %d ids, %v; the engine has %d", name, c.Path, c.Name, len(got.IDs), err, len(ids))
			default:
				seen[shape]++
			}
		}
	}
	t.Logf("%v", seen)
	if seen[tokenizer.Messages] < 100 || seen[tokenizer.Responses] < 100 {
		t.Errorf("only %v are compared", seen)
	}
}
