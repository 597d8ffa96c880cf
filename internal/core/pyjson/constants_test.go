package pyjson_test

import (
	"encoding/json"
	"encoding/json/jsontext"
	"os/exec"
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/core/pyjson"
)

func TestNumbers(t *testing.T) {
	for text, want := range map[string]string{
		`NaN`:                     `0.0`,
		`-Infinity`:               `-1e999999`,
		`{"a":NaN,"b": Infinity}`: `{"a":0.0,"b": 1e999999}`,
		"[NaN\n,\t-Infinity ]":    "[0.0\n,\t-1e999999 ]",
		`["NaN",NaN]`:             `["NaN",0.0]`,
		`["\"",NaN,"\\",NaN]`:     `["\"",0.0,"\\",0.0]`,
		`["\"NaN",1]`:             ``, // all of it in a string
		`{"NaN":1}`:               ``,
		`[nan]`:                   ``,
		`[-NaN]`:                  ``,
		`[+Infinity]`:             ``,
		`[NaNx]`:                  ``,
		`[xNaN]`:                  ``,
		`[Infinityy]`:             ``,
		`[1NaN]`:                  ``, // 10.0 would be JSON
		`[NaN1]`:                  ``,
		`[NaN.5]`:                 ``,
		`[1Infinity]`:             ``,
		`[Infinity1]`:             ``,
		`["a"NaN]`:                ``,
		`[--Infinity]`:            ``,
		`[1-Infinity]`:            ``,
		`[Na`:                     ``,
		`["NaN`:                   ``, // a string that does not end
		`["NaN\`:                  ``,
		``:                        ``,
		`{"a":1}`:                 ``,
		`{NaN:1}`:                 `{0.0:1}`, // no JSON before and after
	} {
		if got := string(pyjson.Numbers([]byte(text))); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

func TestIsNaN(t *testing.T) {
	const text = `[NaN,0.0,Infinity]`
	for offset, want := range map[int64]bool{1: true, 5: false, 9: false, -1: false, int64(len(text)): false} {
		if pyjson.IsNaN([]byte(text), offset) != want {
			t.Errorf("offset %d", offset)
		}
	}
}

// valid tells what the two steps together take for JSON.
func valid(text []byte) bool {
	lenient := []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}
	if jsontext.Value(text).IsValid(lenient...) {
		return true
	}
	numbers := pyjson.Numbers(text)
	return numbers != nil && jsontext.Value(numbers).IsValid(lenient...)
}

// pythonSays asks the real json.loads which of the texts it takes.
func pythonSays(tb testing.TB, texts []string) []bool {
	tb.Helper()
	in, err := json.Marshal(texts)
	if err != nil {
		tb.Fatal(err)
	}
	cmd := exec.Command("python3", "-c", `import json, sys
def takes(text):
    try: json.loads(text)
    except ValueError: return False
    return True
print(json.dumps([takes(text) for text in json.load(sys.stdin)]))`)
	cmd.Stdin = strings.NewReader(string(in))
	out, err := cmd.Output()
	if err != nil {
		tb.Fatalf("this test needs python3: %v", err)
	}
	var said []bool
	if err := json.Unmarshal(out, &said); err != nil || len(said) != len(texts) {
		tb.Fatalf("%d answers, %v", len(said), err)
	}
	return said
}

// TestAgainstPython: every text of up to five of these pieces is JSON here if it is to
// Python.
func TestAgainstPython(t *testing.T) {
	pieces := []string{"NaN", "Infinity", "-", "1", ",", ":", "[", "]", "{", "}", `"`, `"a"`, " ", ".5", "e5", `\`, "N"}
	var texts []string
	var grow func(prefix string, n int)
	grow = func(prefix string, n int) {
		texts = append(texts, prefix)
		for i := 0; n > 0 && i < len(pieces); i++ {
			grow(prefix+pieces[i], n-1)
		}
	}
	grow("", 4)
	for _, head := range []string{"[", `{"a":`, `["`, `[1,`} { // deeper where values stand
		grow(head, 3)
	}
	taken := 0
	for i, python := range pythonSays(t, texts) {
		if got := valid([]byte(texts[i])); got != python {
			t.Errorf("%q: %v here, %v to Python", texts[i], got, python)
		}
		if python {
			taken++
		}
	}
	if t.Logf("%d texts, %d of them JSON to Python", len(texts), taken); taken < 100 {
		t.Error("hardly any of the texts is JSON")
	}
}
