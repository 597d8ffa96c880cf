package tap

import (
	"fmt"
	"io"
	"strings"

	"github.com/eppctl/eppctl/internal/core/recording"
	"github.com/eppctl/eppctl/internal/inspect/out"
)

// writeRaw prints the parts of a message as hex, 32 bytes to a line with their
// offset, and what could not be read of it.
func writeRaw(w io.Writer, e *Entry) {
	names := partNames(e)
	for i, p := range e.Parts {
		fmt.Fprintf(w, "  part %d%s, %s\n", i, names[i], out.Plural(len(p), "byte"))
		for at := 0; at < len(p); at += 32 {
			fmt.Fprintf(w, "    %6d  %x\n", at, p[at:min(at+32, len(p))])
		}
	}
	for _, f := range e.faults() {
		if f.offset < 0 {
			fmt.Fprintf(w, "  not read: %s: %s\n", f.field, out.Clean(f.why))
		} else {
			fmt.Fprintf(w, "  not read: offset %d, %s: %s\n", f.offset, out.Clean(f.field), out.Clean(f.why))
		}
	}
}

// partNames says what the parts are meant for.
func partNames(e *Entry) []string {
	names := make([]string, len(e.Parts))
	if !e.HasSeq {
		return names
	}
	n := len(names)
	names[n-1], names[n-2] = ": payload", fmt.Sprintf(": sequence %d", e.Seq)
	if n >= 3 && (e.Type == recording.TypeFrame || n >= 4) {
		names[n-3] = ": topic"
		if e.Topic != "" {
			names[n-3] += " " + strings.TrimSpace(out.Clean(e.Topic))
		}
	}
	return names
}
