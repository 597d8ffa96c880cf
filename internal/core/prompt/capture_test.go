package prompt_test

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/core/prompt"
	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/testdata"
)

type recorded struct {
	Path     string
	Body     json.RawMessage
	Status   int
	Cached   *int            `json:"cached_tokens"`
	TokenIDs json.RawMessage `json:"token_ids"`
}

// TestCapturedRequests parses every request that was sent to a real engine.
// Where the client sent ids they are the ids the engine used.
func TestCapturedRequests(t *testing.T) {
	own := testdata.Dirs(t, "engines")[0]
	for _, file := range requestFiles(t) {
		t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) {
			native, asked, byLoad := 0, 0, 0
			for _, rec := range requests(t, file) {
				r, p := prompt.Parse(rec.Path, "application/json", rec.Body, prompt.Limits{})
				if p != nil {
					if rec.Status == 200 {
						t.Fatalf("%s %s: refused: %v", rec.Path, rec.Body, p)
					}
					continue
				}
				switch {
				case r.Unmatched != "":
					byLoad++
					// Nothing with a hit that events explain may be given up.
					if strings.HasPrefix(file, own) && rec.Cached != nil && *rec.Cached > 0 {
						t.Errorf("%s with %d cached tokens is routed by load: %s", rec.Path, *rec.Cached, r.Unmatched)
					}
				case r.TokenIDs != nil:
					native++
					if rec.Status != 200 {
						break
					}
					got := append([][]uint32{r.TokenIDs}, r.Further...)
					if want := testdata.Prompts(t, rec.TokenIDs); want != nil && !slices.EqualFunc(got, want, slices.Equal) {
						t.Errorf("ids %v, the engine used %v", got, want)
					}
				default:
					asked++
					if r.Shape == 0 || r.Chars == 0 && rec.Status == 200 {
						t.Errorf("%s: %+v", rec.Path, r)
					}
				}
			}
			if native+asked+byLoad == 0 {
				t.Error("no request was read")
			}
			t.Logf("%d with ids, %d for a tokenizer, %d by load", native, asked, byLoad)
		})
	}
}

func TestCapturedTraps(t *testing.T) {
	seen := map[reason.Code]int{}
	for _, file := range requestFiles(t) {
		for _, rec := range requests(t, file) {
			if r, p := prompt.Parse(rec.Path, "", rec.Body, prompt.Limits{}); p == nil && rec.Status == 200 {
				seen[r.Unmatched]++
			}
		}
	}
	for _, why := range []reason.Code{reason.PrivateCache, reason.CacheBypassed, reason.UnknownPath} {
		if seen[why] == 0 {
			t.Errorf("no captured request is routed with %s", why)
		}
	}
}

func requestFiles(tb testing.TB) (files []string) {
	tb.Helper()
	for _, dir := range testdata.Dirs(tb, "engines") {
		found, err := filepath.Glob(filepath.Join(dir, "*", "*", "requests.jsonl"))
		if err != nil {
			tb.Fatal(err)
		}
		files = append(files, found...)
	}
	if len(files) == 0 {
		tb.Fatal("no captured requests")
	}
	return files
}

func requests(tb testing.TB, file string) (list []recorded) {
	tb.Helper()
	f, err := os.Open(file)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	s.Buffer(nil, 64<<20)
	for s.Scan() {
		var rec recorded
		if err := json.Unmarshal(s.Bytes(), &rec); err != nil {
			tb.Fatalf("%s: %v", file, err)
		}
		if string(rec.Body) == "null" {
			rec.Body = nil
		}
		list = append(list, rec)
	}
	if err := s.Err(); err != nil {
		tb.Fatal(err)
	}
	return list
}
