package chat

import "github.com/eppctl/eppctl/internal/core/chat/jinja2"

// object writes the type of an object.
func (w *schemaWriter) object(v jinja2.Value, depth int, indent string) error {
	w.comment(indent, v, "description")
	w.b.WriteString("{\n")
	if properties := member(v, "properties"); properties.IsDict() {
		required := map[string]bool{}
		if list := member(v, "required"); list.IsList() {
			for _, name := range list.AsList().Items {
				if jinja2.IsText(name) {
					required[name.AsString()] = true
				}
			}
		}
		for _, key := range properties.AsDict().Keys {
			mark := "?"
			if required[key] {
				mark = ""
			}
			if err := w.property(key+mark, member(properties, key), depth+1, indent); err != nil {
				return err
			}
		}
	}
	w.b.WriteString(indent + "}")
	return nil
}

// comment writes a member of a schema that is text as a line of its own.
func (w *schemaWriter) comment(indent string, v jinja2.Value, key string) bool {
	s := member(v, key)
	if jinja2.IsText(s) {
		w.b.WriteString(indent + "// " + s.AsString() + "\n")
	}
	return jinja2.IsText(s)
}

// property writes a property of an object. name has the mark of those that may be absent.
func (w *schemaWriter) property(name string, v jinja2.Value, depth int, indent string) error {
	if w.comment(indent, v, "title") {
		w.b.WriteString(indent + "//\n")
	}
	variants, choice := jinja2.Get(orDict(v), "oneOf")
	if !choice {
		w.comment(indent, v, "description")
	}
	w.examples(v, indent)
	if choice && variants.IsList() {
		return w.choice(name, v, variants.AsList().Items, depth, indent)
	}
	w.b.WriteString(indent + name + ": ")
	if err := w.nullable(v, depth, indent+"    "); err != nil {
		return err
	}
	w.b.WriteString(",")
	if !choice {
		if err := w.notes(nil, v, plainInEnum); err != nil {
			return err
		}
	}
	w.b.WriteString("\n")
	return nil
}

func (w *schemaWriter) examples(v jinja2.Value, indent string) {
	list := member(v, "examples")
	if !list.IsList() || list.AsList().Len() == 0 {
		return
	}
	w.b.WriteString(indent + "// Examples:\n")
	for _, x := range list.AsList().Items {
		if jinja2.IsText(x) {
			w.b.WriteString(indent + `// - "` + x.AsString() + "\"\n")
		}
	}
}

// choice writes a property that is one of several types. What is said of it stands above,
// unless the first type says the same.
func (w *schemaWriter) choice(name string, v jinja2.Value, variants []jinja2.Value, depth int, indent string) error {
	about := member(v, "description")
	said := func(x jinja2.Value) bool {
		return jinja2.IsText(about) && isText(member(x, "description"), about.AsString())
	}
	above := (len(variants) == 0 || !said(variants[0])) && w.comment(indent, v, "description")
	if def, given := jinja2.Get(v, "default"); given {
		note, err := defaultNote(def, isEnum(v), plainInEnum)
		if err != nil {
			return err
		}
		w.b.WriteString(indent + "// " + note + "\n")
	}
	w.b.WriteString(indent + name + ":\n")
	for i, x := range variants {
		w.b.WriteString(indent + " | ")
		if err := w.nullable(x, depth+1, indent+"   "); err != nil {
			return err
		}
		var notes []string
		if d := member(x, "description"); (i > 0 || !above) && jinja2.IsText(d) && !said(x) {
			notes = append(notes, d.AsString())
		}
		if err := w.notes(notes, x, plainInEnum); err != nil {
			return err
		}
		w.b.WriteString("\n")
	}
	w.b.WriteString(indent + ",\n")
	return nil
}
