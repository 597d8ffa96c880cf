package serve

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

func (d *decoder) scalar(n ast.Node, v reflect.Value, key string) {
	if _, nested := n.(ast.ScalarNode); !nested {
		d.problem(n, key, describe(n), expects(v.Type()), "")
		return
	}
	if err := setScalar(n, v.Addr().Interface()); err != nil {
		hint := ""
		if !errors.Is(err, errWrong) {
			hint = err.Error()
		}
		d.problem(n, key, describe(n), expects(v.Type()), hint)
	}
}

// setScalar writes a node's value behind p, or leaves what stands there.
func setScalar(n ast.Node, p any) error {
	text, kind := scalarText(n), n.Type()
	switch p := p.(type) {
	case *time.Duration:
		return set(p, parseDuration)(text)
	case *Bytes:
		return set(p, parseBytes)(text)
	case *string:
		// The source text of a number is as good as a string; true and false are
		// more likely a mistake.
		if kind == ast.BoolType {
			return errWrong
		}
		*p = text
	case *bool:
		if kind != ast.BoolType {
			return errWrong
		}
		*p = strings.EqualFold(text, "true")
	case *int:
		if kind != ast.IntegerType {
			return errWrong
		}
		return set(p, func(s string) (int, error) {
			i, err := strconv.ParseInt(s, 0, 64)
			return int(i), err
		})(text)
	case *float64:
		// .nan and .inf are kinds of their own. 25e9 is a number by YAML 1.2,
		// which the library takes for text.
		plain := kind == ast.StringType && n.GetToken().Type == token.StringType && strings.IndexAny(text, "+-.0123456789") == 0
		if kind != ast.IntegerType && kind != ast.FloatType && !plain {
			return errWrong
		}
		return set(p, parseFinite)(text)
	default:
		return fmt.Errorf("no decoder for %T", p)
	}
	return nil
}

func set[T any](p *T, parse func(string) (T, error)) func(string) error {
	return func(text string) error {
		v, err := parse(text)
		if err == nil {
			*p = v
		}
		return err
	}
}

func scalarText(n ast.Node) string {
	if l, ok := n.(*ast.LiteralNode); ok {
		return l.Value.Value
	}
	return n.GetToken().Value
}

func describe(n ast.Node) string {
	switch n.Type() {
	case ast.MappingType, ast.MappingValueType:
		return "found a section"
	case ast.SequenceType:
		return "found a list"
	case ast.StringType, ast.LiteralType:
		return fmt.Sprintf("found %q", clip(scalarText(n)))
	}
	return "found " + clip(scalarText(n))
}

// clip keeps a message readable when the value is not.
func clip(s string) string {
	const limit = 60
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "…"
}
