package chat

import (
	"bytes"
	"strings"

	"github.com/eppctl/eppctl/internal/core/chat/jinja2"
)

// schemaDepth is how deep a schema may be nested. The library reads 128 levels of the
// whole conversation, of which a schema's first is the tenth.
const schemaDepth = 90

// maxSchemas is how long all declarations of functions may be, in bytes: as long as the
// longest prompt that is encoded. What is deep in a schema has several hundred blanks
// before it, so that a body alone does not bound them.
const maxSchemas = 8 << 20

// schemaWriter writes JSON schemas as TypeScript, as openai-harmony does
// (json_schema_to_typescript, 0.0.8; oss-harmony 0.0.11 writes the same).
type schemaWriter struct {
	b    bytes.Buffer
	used int // by the functions before
}

// schema writes the type that a schema stands for.
func (w *schemaWriter) schema(v jinja2.Value, depth int, indent string) error {
	if depth > schemaDepth {
		return unrenderable("the parameters of a function are nested too deep")
	}
	if w.used+w.b.Len() > maxSchemas {
		return unrenderable("the declarations of functions are too long")
	}
	if variants := member(v, "oneOf"); variants.IsList() {
		return w.variants(variants.AsList().Items, depth, indent)
	}
	kind := member(v, "type")
	if kind.IsList() {
		if names := typeNames(kind.AsList().Items); names != "" {
			w.b.WriteString(names)
			return nil
		}
	}
	switch name := text(v, "type"); name {
	case "object":
		return w.object(v, depth, indent)
	case "array":
		items, given := jinja2.Get(v, "items")
		if !given {
			w.b.WriteString("Array<any>")
			return nil
		}
		if err := w.schema(items, depth+1, indent); err != nil {
			return err
		}
		w.b.WriteString("[]")
	case "string":
		w.b.WriteString(stringType(v))
	case "number", "integer":
		w.b.WriteString("number")
	case "boolean":
		w.b.WriteString(name)
	default:
		w.b.WriteString("any")
	}
	return nil
}

// typeNames are the names of a list of types, "" = there are none.
func typeNames(items []jinja2.Value) string {
	var names []string
	for _, item := range items {
		if isText(item, "integer") {
			names = append(names, "number")
		} else if jinja2.IsText(item) {
			names = append(names, item.AsString())
		}
	}
	return strings.Join(names, " | ")
}

// stringType is the type of a text, or of those that it may be.
func stringType(v jinja2.Value) string {
	var quoted []string
	if enum := member(v, "enum"); enum.IsList() {
		for _, item := range enum.AsList().Items {
			if jinja2.IsText(item) {
				quoted = append(quoted, `"`+item.AsString()+`"`)
			}
		}
	}
	if len(quoted) == 0 {
		return "string"
	}
	return strings.Join(quoted, " | ")
}

// nullable writes the type of a schema, and null where it may be that too.
func (w *schemaWriter) nullable(v jinja2.Value, depth int, indent string) error {
	from := w.b.Len()
	if err := w.schema(v, depth, indent); err != nil {
		return err
	}
	if n := member(v, "nullable"); n.IsBool() && n.AsBool() && !bytes.Contains(w.b.Bytes()[from:], []byte("null")) {
		w.b.WriteString(" | null")
	}
	return nil
}

// variants writes a choice that is not a property's.
func (w *schemaWriter) variants(list []jinja2.Value, depth int, indent string) error {
	for _, v := range list {
		w.b.WriteString("\n" + indent + " | ")
		if err := w.nullable(v, depth+1, indent+"   "); err != nil {
			return err
		}
		var notes []string
		if d := member(v, "description"); jinja2.IsText(d) {
			notes = append(notes, d.AsString())
		}
		if err := w.notes(notes, v, quotedHere); err != nil {
			return err
		}
	}
	return nil
}

// notes writes a comment behind a type, with the default of the schema at its end.
func (w *schemaWriter) notes(notes []string, v jinja2.Value, quoting quoting) error {
	if def, given := jinja2.Get(orDict(v), "default"); given {
		s, err := defaultNote(def, isEnum(v), quoting)
		if err != nil {
			return err
		}
		notes = append(notes, s)
	}
	if len(notes) > 0 {
		w.b.WriteString(" // " + strings.Join(notes, " "))
	}
	return nil
}

// orDict is v, or an empty dict where v is none.
func orDict(v jinja2.Value) jinja2.Value {
	if v.IsDict() {
		return v
	}
	return jinja2.Dict()
}

func isEnum(v jinja2.Value) bool {
	enum := member(v, "enum")
	return enum.IsList() && enum.AsList().Len() > 0
}
