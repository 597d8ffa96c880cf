package serve

import (
	"encoding/json/jsontext"
	"math"
	"slices"
	"strconv"

	"github.com/goccy/go-yaml/ast"
)

// jsonObject is a section that is passed on as a JSON object, its keys in order; "" =
// none.
type jsonObject string

// maxJSON bounds it, which aliases of aliases could make large.
const maxJSON = 64 << 10

func (o *jsonObject) decodeNode(d *decoder, n ast.Node, key string) {
	if _, ok := n.(*ast.MappingNode); !ok {
		d.problem(n, key, describe(n), "a section of names and values, such as enable_thinking: false", "")
		return
	}
	if b, ok := d.json(nil, n, key); ok {
		*o = jsonObject(b)
	}
}

// json appends a node's value; ok is false when it has none, which was said.
func (d *decoder) json(b []byte, n ast.Node, key string) (out []byte, ok bool) {
	n = d.plain(n)
	if d.nodes++; d.nodes > maxNodes || len(b) > maxJSON {
		d.problem(n, key, "found more than can be meant", "at most "+strconv.Itoa(maxJSON>>10)+" KiB", "")
		return b, false
	}
	switch x := n.(type) {
	case nil, *ast.NullNode:
		return append(b, "null"...), true
	case *ast.MappingNode:
		return d.jsonMembers(b, x, key)
	case *ast.SequenceNode:
		return d.jsonElements(b, x, key)
	case *ast.BoolNode:
		return strconv.AppendBool(b, x.Value), true
	case *ast.IntegerNode:
		switch v := x.Value.(type) {
		case int64:
			return strconv.AppendInt(b, v, 10), true
		case uint64:
			return strconv.AppendUint(b, v, 10), true
		}
	case *ast.FloatNode:
		if text := jsontext.Value(scalarText(n)); text.IsValid() { // Python tells 1.0 from 1
			return append(b, text...), true
		}
		if !math.IsInf(x.Value, 0) && !math.IsNaN(x.Value) {
			return strconv.AppendFloat(b, x.Value, 'e', -1, 64), true
		}
	case *ast.StringNode, *ast.LiteralNode:
		return appendText(b, scalarText(n)), true
	}
	d.problem(n, key, describe(n), "a value that JSON has", "")
	return b, false
}

func (d *decoder) jsonMembers(b []byte, n *ast.MappingNode, key string) (out []byte, ok bool) {
	var names []string
	b = append(b, '{')
	for i, kv := range n.Values {
		name := kv.Key.GetToken().Value
		sub := join(key, name)
		if kv.Key.IsMergeKey() || slices.Contains(names, name) {
			d.problem(kv.Key, sub, "found "+strconv.Quote(clip(name)), "each name once, and no merge", "")
			return b, false
		}
		names = append(names, name)
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendText(b, name), ':')
		if b, ok = d.json(b, kv.Value, sub); !ok {
			return b, false
		}
	}
	return append(b, '}'), true
}

func (d *decoder) jsonElements(b []byte, n *ast.SequenceNode, key string) (out []byte, ok bool) {
	b = append(b, '[')
	for i, v := range n.Values {
		if i > 0 {
			b = append(b, ',')
		}
		if b, ok = d.json(b, v, key+"["+strconv.Itoa(i)+"]"); !ok {
			return b, false
		}
	}
	return append(b, ']'), true
}

// appendText appends a JSON string. YAML's text is Unicode.
func appendText(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, s)
	return b
}
