package jinja2

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/testdata"
)

// oracle is what Python rendered (testdata/templates/README.md).
type oracle struct {
	Templates map[string]struct {
		SHA256  string `json:"template_sha256"`
		Renders []struct {
			Case   string   `json:"case"`
			Error  string   `json:"error"`
			Bytes  int      `json:"bytes"`
			SHA256 string   `json:"sha256"`
			Text   string   `json:"text"`
			Prefix []string `json:"prefix128"`
		} `json:"renders"`
	} `json:"templates"`
}

// oracleTime is the clock the oracle was made with.
var oracleTime = time.Date(2026, 11, 29, 11, 0, 0, 0, time.UTC)

// conversations are the cases, as name and raw variables.
func conversations(tb testing.TB, dir string) (names []string, vars []json.RawMessage) {
	tb.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "cases.json"))
	if err != nil {
		tb.Fatal(err)
	}
	var list [][2]json.RawMessage
	if err := json.Unmarshal(b, &list); err != nil {
		tb.Fatal(err)
	}
	for _, c := range list {
		var name string
		if err := json.Unmarshal(c[0], &name); err != nil {
			tb.Fatal(err)
		}
		names, vars = append(names, name), append(vars, c[1])
	}
	return names, vars
}

// variables makes a JSON object the variables of a render.
func variables(tb testing.TB, raw []byte) map[string]Value {
	tb.Helper()
	v, err := ParseJSON(raw)
	if err != nil {
		tb.Fatal(err)
	}
	return v.AsDict().Data
}

// TestOracle: TK-30, TK-31, TK-32, TK-33. An extra folder may have templates alone, which
// TestConversationsAgainstPython renders.
func TestOracle(t *testing.T) {
	for i, dir := range testdata.Dirs(t, "templates") {
		if more, err := filepath.Glob(filepath.Join(dir, "*.jinja")); i > 0 && err == nil && len(more) > 0 {
			if _, err := os.Stat(filepath.Join(dir, "oracle.json.gz")); errors.Is(err, fs.ErrNotExist) {
				continue
			}
		}
		var o oracle
		testdata.GzipJSON(t, filepath.Join(dir, "oracle.json.gz"), &o)
		names, vars := conversations(t, dir)
		if own := i == 0; own && (len(o.Templates) < 13 || len(names) < 21) || len(o.Templates) == 0 || len(names) == 0 {
			t.Fatalf("%s: %d templates, %d cases", dir, len(o.Templates), len(names))
		}
		for name, want := range o.Templates {
			t.Run(name, func(t *testing.T) {
				source := testdata.Template(t, name)
				if sum := sha256.Sum256([]byte(source)); hex.EncodeToString(sum[:]) != want.SHA256 {
					t.Fatal("not the template the oracle was made with")
				}
				tpl, err := Compile(source)
				if err != nil {
					t.Fatal(err)
				}
				for i, r := range want.Renders {
					if r.Case != names[i] {
						t.Fatalf("case %d is %s, not %s", i, r.Case, names[i])
					}
					out, err := tpl.Render(context.Background(), Input{Vars: variables(t, vars[i]), Now: oracleTime})
					switch {
					case r.Error != "":
						refused, exceeded := new(Refused), new(Exceeded)
						if !errors.As(err, &refused) && !(r.Error == "RecursionError" && errors.As(err, &exceeded)) {
							t.Errorf("%s: Python raises %s, we return %v", r.Case, r.Error, err)
						}
					case err != nil:
						t.Errorf("%s: %v", r.Case, err)
					default:
						if diff := differs(out.Text, r.Bytes, r.SHA256, r.Text, r.Prefix); diff != "" {
							t.Errorf("%s: %s", r.Case, diff)
						}
					}
				}
			})
		}
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
