package native_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/eppctl/eppctl/internal/core/tokenizer/native"
	"github.com/eppctl/eppctl/internal/testdata"
)

// TestTK01 encodes the stored strings with every vocabulary: TK-01, TK-02, TK-02d,
// TK-04 (long runs), TK-07 (ſ and the Kelvin sign), TK-08 (numbers) are among them;
// TK-02a are those whose ids depend on the version of the Unicode tables. Each is
// encoded twice: the second time the caches know it. An extra folder has strings and
// ids of its own, and may lack some.
func TestTK01(t *testing.T) {
	for i, dir := range testdata.Dirs(t, "tokenizer") {
		own := i == 0
		compared := 0
		for _, name := range allNames() {
			for _, set := range []string{"", "tables_"} {
				strings, ids := filepath.Join(dir, "cases_"+set+"open.json.gz"), filepath.Join(dir, "oracle_"+set+name+".json.gz")
				if !own && (missing(t, strings) || missing(t, ids)) {
					continue
				}
				var cases []string
				var want [][2][]uint32
				testdata.GzipJSON(t, strings, &cases)
				testdata.GzipJSON(t, ids, &want)
				if len(cases) != len(want) || len(cases) == 0 {
					t.Fatalf("%s: %d strings, %d lists", ids, len(cases), len(want))
				}
				compared += len(cases)
				t.Run(set+name, func(t *testing.T) { compareStored(t, load(t, name), cases, want) })
			}
		}
		if t.Logf("%s: %d strings", dir, compared); compared == 0 {
			t.Errorf("%s has no strings with ids", dir)
		}
	}
}

func missing(t *testing.T, file string) bool {
	t.Helper()
	_, err := os.Stat(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return err != nil
}

func compareStored(t *testing.T, tok *native.Tokenizer, cases []string, want [][2][]uint32) {
	bad := 0
	for range 2 {
		for i, s := range cases {
			for k, special := range []bool{false, true} {
				got, err := tok.Encode(s, special)
				if err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(got, want[i][k]) {
					if bad++; bad < 5 {
						t.Errorf("string %d %+q, special %v: %s", i, s, special, difference(got, want[i][k]))
					}
				}
			}
		}
	}
	t.Logf("%d strings, %d differ", len(cases), bad)
}
