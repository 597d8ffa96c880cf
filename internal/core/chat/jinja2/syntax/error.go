package syntax

import "fmt"

// Error is a template that Jinja2 itself refuses.
type Error struct {
	Line int
	Text string
}

func (e *Error) Error() string { return fmt.Sprintf("template line %d: %s", e.Line, e.Text) }

// Unsupported is a template that Jinja2 may accept and this package does not.
type Unsupported struct {
	Line int
	What string // "statement import", "nesting deeper than 100"
}

func (e *Unsupported) Error() string {
	return fmt.Sprintf("template line %d: %s is not supported", e.Line, e.What)
}
