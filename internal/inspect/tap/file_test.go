package tap

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/recording"
	"github.com/eppctl/eppctl/internal/inspect"
)

// REC-02, REC-04, REC-05 at the command.
func TestUnsoundRecordings(t *testing.T) {
	path := file(t, capture(t, "vllm-0.32.0/dialin"))
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(whole)
	flipped[len(flipped)/2] ^= 1
	version := bytes.Clone(whole)
	version[9] = 2
	for name, c := range map[string]struct {
		b      []byte
		strict bool
		kind   inspect.Kind
		code   string // "" = no error
		stderr string
	}{
		"REC-02 cut":          {whole[:len(whole)/2], false, 0, "", "ends early, at offset"},
		"REC-02 cut, strict":  {whole[:len(whole)/2], true, inspect.Incomplete, "E_RECORDING", ""},
		"REC-04 flipped bit":  {flipped, false, inspect.Failed, "E_RECORDING", ""},
		"REC-05 version 2":    {version, false, inspect.Failed, "E_RECORDING", ""},
		"no recording at all": {[]byte("hello"), false, inspect.Failed, "E_RECORDING", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var warned string
			f := &File{Paths: []string{"-"}, Stdin: bytes.NewReader(c.b), Strict: c.strict, Warn: func(s string) { warned = s }}
			_, stderr, err := shown(t, &Command{Source: f, Format: "table"}, nil)
			var own *inspect.Error
			switch {
			case c.code == "" && err != nil, c.code != "" && (!errors.As(err, &own) || own.Code != c.code || own.Kind != c.kind):
				t.Errorf("%v", err)
			case c.code != "" && c.kind == inspect.Failed && !strings.Contains(own.Error(), "offset"):
				t.Errorf("no offset: %v", err)
			}
			if !strings.Contains(warned, c.stderr) || err == nil && !strings.Contains(stderr, "tap: ") {
				t.Errorf("warned %q, stderr %q", warned, stderr)
			}
		})
	}
	t.Run("no such file", func(t *testing.T) {
		_, _, err := shown(t, &Command{Source: &File{Paths: []string{"/does/not/exist"}}}, nil)
		var own *inspect.Error
		if !errors.As(err, &own) || own.Code != "E_RECORDING" {
			t.Error(err)
		}
	})
}

func TestPartOfARecording(t *testing.T) {
	l := capture(t, "vllm-0.32.0/llama")
	path := file(t, l)
	from, to := time.Unix(0, l[11].At), time.Unix(0, l[20].At)
	c := &Command{Source: &File{Paths: []string{path}, From: Moment{at: from}, To: Moment{at: to}}, Format: "jsonl"}
	_, stderr, err := shown(t, c, nil)
	if err != nil || !strings.Contains(stderr, `"batches":10,`) {
		t.Errorf("%v %s", err, stderr)
	}
	t.Run("speed", func(t *testing.T) {
		began := time.Now()
		f := &File{Paths: []string{file(t, list{message(podA, 1, store(1, 1)), {Type: recording.TypeFrame, At: at + 100e6, Pod: podA}})}, Speed: 2}
		if _, _, err := shown(t, &Command{Source: f}, nil); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(began); d < 50*time.Millisecond {
			t.Errorf("100 ms at double speed took %v", d)
		}
	})
}
