package chat

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/testdata"
)

// chatPrep is what a real vLLM tokenized (testdata/engines/README.md).
type chatPrep struct {
	Requests  [][2]json.RawMessage `json:"requests"`
	Templates map[string]struct {
		SHA256    string `json:"template_sha256"`
		Format    string `json:"content_format"`
		Developer bool   `json:"developer_role"`
		Renders   []struct {
			Case   string   `json:"case"`
			Status int      `json:"status"`
			Bytes  int      `json:"bytes"`
			SHA256 string   `json:"sha256"`
			Text   string   `json:"text"`
			Prefix []string `json:"prefix128"`
			Error  string   `json:"error"`
		} `json:"renders"`
	} `json:"templates"`
}

func readFile(tb testing.TB, path string) []byte {
	tb.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// capturedAt is a moment of the day the renders were captured.
var capturedAt = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// TestPreparation: TK-36, TK-37. Every request with every template is the text
// that vLLM tokenized, or refused where vLLM refuses.
func TestPreparation(t *testing.T) {
	seen := 0
	for _, dir := range testdata.Dirs(t, "engines") {
		path := filepath.Join(dir, "chat-prep", "chat-prep.json.gz")
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) && seen > 0 {
			continue // an extra folder need not have one
		}
		var c chatPrep
		testdata.GzipJSON(t, path, &c)
		config := readFile(t, testdata.Beside(t, dir, "engines", "models/tiny-llama/tokenizer_config.json"))
		for name, want := range c.Templates {
			seen++
			t.Run(name, func(t *testing.T) {
				source := testdata.Template(t, name)
				if sum := sha256.Sum256([]byte(source)); hex.EncodeToString(sum[:]) != want.SHA256 {
					t.Fatal("not the template of the capture")
				}
				r, err := New(Files{TokenizerConfig: config}, Options{Template: source})
				if err != nil {
					t.Fatal(err)
				}
				if format, err := r.ContentFormat(false); err != nil || format.String() != want.Format {
					t.Errorf("content format %v, %v, vLLM detected %s", format, err, want.Format)
				}
				for i, w := range want.Renders {
					var caseName string
					if err := json.Unmarshal(c.Requests[i][0], &caseName); err != nil || caseName != w.Case {
						t.Fatalf("request %d is %s, not %s", i, caseName, w.Case)
					}
					got, err := r.Render(context.Background(), c.Requests[i][1], capturedAt)
					switch {
					case w.Status != 200:
						if refused := new(Rejected); !errors.As(err, &refused) {
							t.Errorf("%s: vLLM answers %d %s, we return %v", w.Case, w.Status, w.Error, err)
						}
					case err != nil:
						t.Errorf("%s: %v", w.Case, err)
					default:
						if diff := differs(got.Text, w.Bytes, w.SHA256, w.Text, w.Prefix); diff != "" {
							t.Errorf("%s: %s", w.Case, diff)
						}
						if got.Exact != len(got.Text) {
							t.Errorf("%s: exact up to %d of %d without media", w.Case, got.Exact, len(got.Text))
						}
					}
				}
			})
		}
	}
	if seen < 13 {
		t.Fatalf("%d templates", seen)
	}
}

// differs says where a text differs from a stored one, "" for nowhere.
func differs(got string, bytes int, sum, text string, prefix []string) string {
	h := sha256.Sum256([]byte(got))
	if len(got) == bytes && hex.EncodeToString(h[:]) == sum {
		return ""
	}
	if text != "" {
		n := 0
		for n < len(got) && n < len(text) && got[n] == text[n] {
			n++
		}
		return fmt.Sprintf("differs at byte %d: got %.60q, want %.60q", n, got[n:], text[n:])
	}
	for i, want := range prefix {
		k := 128 * (i + 1)
		if k > len(got) {
			return fmt.Sprintf("has %d bytes instead of %d, equal up to %d", len(got), bytes, k-128)
		}
		if h := sha256.Sum256([]byte(got[:k])); hex.EncodeToString(h[:4]) != want {
			return fmt.Sprintf("differs after byte %d: %q", k-128, got[k-128:k])
		}
	}
	return fmt.Sprintf("has %d bytes instead of %d, equal up to %d", len(got), bytes, 128*len(prefix))
}
