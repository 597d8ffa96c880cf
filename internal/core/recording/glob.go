package recording

import (
	"path"
	"strings"
)

// Glob reports whether a pattern with *, ? and [] fits a name. Slashes, which
// models have, are letters like others. A pattern that is none fits nothing.
func Glob(pattern, name string) bool {
	const letter = "\x00"
	ok, err := path.Match(strings.ReplaceAll(pattern, "/", letter), strings.ReplaceAll(name, "/", letter))
	return err == nil && ok
}
