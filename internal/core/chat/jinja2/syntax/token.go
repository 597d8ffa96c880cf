package syntax

// token is one piece of a template. Comments, raw markers and white space inside
// tags do not become tokens.
type token struct {
	kind  kind
	text  string // name, operator, string content, template data
	value any    // int64, *big.Int or float64 of a number
	line  int
}

type kind uint8

const (
	eof kind = iota
	data
	varBegin
	varEnd
	blockBegin
	blockEnd
	name
	str
	integer
	float
	operator
)

// is reports whether t is a word of the language at this place.
func (t token) is(word string) bool { return t.kind == name && t.text == word }

// op reports whether t is an operator.
func (t token) op(text string) bool { return t.kind == operator && t.text == text }

func (t token) describe() string {
	switch t.kind {
	case eof:
		return "end of template"
	case data:
		return "template data"
	case varBegin, varEnd:
		return "end of print statement"
	case blockBegin, blockEnd:
		return "end of statement block"
	}
	return "'" + t.text + "'"
}
