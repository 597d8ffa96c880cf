package jinja2

import "context"

// DumpJSON writes a value as Python's json.dumps does: keys in their order, ", "
// and ": " between them. ascii escapes what is not ASCII, which is the default of
// json.dumps and not of a template's tojson.
func DumpJSON(v Value, ascii bool) (string, error) {
	r := &render{}
	r.meter.reset(context.Background(), DefaultLimits)
	w := jsonWriter{r: r, ascii: ascii, item: ", ", key: ": "}
	if err := w.value(v, 0); err != nil {
		return "", err
	}
	return w.b.String(), nil
}
