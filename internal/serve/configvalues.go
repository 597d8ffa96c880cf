package serve

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/eppctl/eppctl/internal/core/pod"
)

// Value is one value of a configuration in force, and where it comes from.
type Value struct {
	Key   string `json:"key"`
	Value any    `json:"value"` // null: a list without entries
	From  Origin `json:"from"`
}

// Origin is where a value comes from.
type Origin struct {
	Kind string `json:"kind"` // flag, environment, file, preset, default
	// Name is that of the flag, the variable or the preset.
	Name string `json:"name,omitempty"`
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
}

// The kinds of origins, the stronger first.
const (
	FromFlag        = "flag"
	FromEnvironment = "environment"
	FromFile        = "file"
	FromPreset      = "preset"
	FromDefault     = "default"
)

// OriginKinds lists them.
func OriginKinds() []string {
	return []string{FromFlag, FromEnvironment, FromFile, FromPreset, FromDefault}
}

func (o Origin) String() string {
	switch o.Kind {
	case FromFile:
		return o.Kind + " " + o.File + ":" + strconv.Itoa(o.Line)
	case FromDefault:
		return o.Kind
	}
	return o.Kind + " " + o.Name
}

// Set is the origin of what a flag or a variable set; by is its name.
func Set(by string) Origin {
	if strings.HasPrefix(by, "-") {
		return Origin{Kind: FromFlag, Name: by}
	}
	return Origin{Kind: FromEnvironment, Name: by}
}

// Values lists what is in force, in the order of docs/config.md. An entry of a list has
// only what it was given and what serve made of that: 0 means "not told" there. Secrets
// in URLs are masked.
func (c *Config) Values() []Value {
	w := lister{config: c}
	w.structure(reflect.ValueOf(c.inForce()), "")
	return w.values
}

// inForce is the configuration in the layout of the file.
func (c *Config) inForce() file {
	f := c.file
	f.Listen, f.Limits, f.Scrape, f.Envoy, f.Decisions, f.StrictModels, f.Drain, f.LogLevel = c.Listen, c.Limits, c.Scrape, c.Envoy, c.Decisions, c.StrictModels, c.Drain, c.LogLevel
	if f.Weights.Preset == "" {
		f.Weights.Preset = "pool"
	}
	f.Pods = slices.Clone(f.Pods)
	for i := range min(len(f.Pods), len(c.Pods)) {
		e, s := &f.Pods[i], &c.Pods[i]
		e.Name, e.Ranks, e.Events, e.Replay, e.EventsBind = s.Name, s.Ranks, s.Events, s.Replay, s.Bind
	}
	return f
}

// lister walks the layout.
type lister struct {
	config *Config
	listed bool // below a list
	values []Value
}

func (w *lister) structure(v reflect.Value, key string) {
	for _, f := range fieldsOf(v.Type()) {
		w.value(v.FieldByIndex(f.index), join(key, f.name))
	}
}

func (w *lister) value(v reflect.Value, key string) {
	switch v.Kind() {
	case reflect.Struct:
		w.structure(v, key)
	case reflect.Slice:
		w.list(v, key)
	default:
		w.add(key, plainValue(v), w.config.origin(key), v.IsZero())
	}
}

// list lists the entries, each where it stands; one that serve made of another stands
// where that does.
func (w *lister) list(v reflect.Value, key string) {
	from := w.config.origin(key)
	if v.Type().Elem().Kind() != reflect.Struct && v.Len() == 0 {
		w.add(key, nil, from, true)
	}
	above := w.listed
	w.listed = w.listed || v.Type().Elem().Kind() == reflect.Struct
	for i := range v.Len() {
		entry := key + "[" + strconv.Itoa(i) + "]"
		if v.Index(i).Kind() == reflect.Struct {
			w.structure(v.Index(i), entry)
			continue
		}
		at := w.config.origin(entry)
		if at.Kind == FromDefault {
			at = from
		}
		w.add(entry, plainValue(v.Index(i)), at, false)
	}
	w.listed = above
}

func (w *lister) add(key string, value any, from Origin, zero bool) {
	if w.listed && zero && from.Kind == FromDefault {
		return
	}
	w.values = append(w.values, Value{Key: key, Value: value, From: from})
}

// origin says where the value at a key path comes from.
func (c *Config) origin(key string) Origin {
	if by := c.blame[key]; by != "" {
		return Set(by)
	}
	if at := c.places[key]; at != nil {
		return Origin{Kind: FromFile, File: c.Path, Line: at.Line}
	}
	if name := c.file.Weights.Preset; name != "" && strings.HasPrefix(key, "weights.") {
		return Origin{Kind: FromPreset, Name: name}
	}
	return Origin{Kind: FromDefault}
}

// plainValue is a value as the file would have it.
func plainValue(v reflect.Value) any {
	switch x := v.Interface().(type) {
	case time.Duration:
		return x.String()
	case Bytes:
		return x.String()
	}
	if v.Kind() == reflect.String {
		return pod.MaskURL(v.String())
	}
	return v.Interface()
}
