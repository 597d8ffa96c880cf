package modelsource

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"unicode/utf8"
)

// maxTemplate is ten times the largest template of the tests.
const maxTemplate = 1 << 20

// templateFile reads the file that an engine's --chat-template names.
func templateFile(path string) (string, error) {
	bad := func(why string, err error) error {
		return &Error{Kind: Invalid, What: "chat template " + path, Why: why, Hint: "name the file that the engine's --chat-template names", Err: err}
	}
	f, err := os.Open(path)
	if err != nil {
		return "", bad(err.Error(), err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxTemplate+1))
	switch {
	case err != nil:
		return "", bad(err.Error(), err)
	case len(b) > maxTemplate:
		return "", bad(fmt.Sprintf("it is longer than %d bytes", maxTemplate), nil)
	case !utf8.Valid(b):
		return "", bad("it is not UTF-8", nil)
	case len(bytes.TrimSpace(b)) == 0:
		return "", bad("it is empty", nil)
	}
	return string(b), nil
}
