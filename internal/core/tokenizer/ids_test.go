package tokenizer_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/core/tokenizer"
)

var idLists = []string{
	`[]`, `[ ]`, `[1]`, `[ 1 ,2, 3 ]`, "[\n0,\t4294967295\r]", `[4294967296]`, `[99999999999999999999]`, `[1.5]`, `[1e2]`,
	`[-1]`, `[-0]`, `[null]`, `[true]`, `[[1]]`, `[1,[2]]`, `["1"]`, `{}`, `1`,
	// and what is no JSON
	``, `[`, `]`, `[1`, `1]`, `[1]]`, `[1] [2]`, `[00]`, `[01]`, `[1 2]`, `[,]`, `[1,]`, `[,1]`, `[1,,2]`, `[1]x`, `[1/]`, `[:]`,
}

// twinIDs is AppendIDs by way of the standard library.
func twinIDs(raw string) (ids []uint32, ok bool) {
	var list []json.RawMessage
	if !strings.HasPrefix(raw, "[") || !strings.HasSuffix(raw, "]") || json.Unmarshal([]byte(raw), &list) != nil {
		return nil, false
	}
	for _, item := range list {
		var id uint32
		if string(item) == "null" || json.Unmarshal(item, &id) != nil {
			return nil, false
		}
		ids = append(ids, id)
	}
	return ids, true
}

func FuzzAppendIDs(f *testing.F) {
	for _, s := range idLists {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		before := []uint32{7}
		got, err := tokenizer.AppendIDs(before, []byte(raw), 1000)
		want, ok := twinIDs(raw)
		if ok && len(want) > 1000 {
			if !errors.Is(err, tokenizer.ErrManyIDs) {
				t.Fatalf("%d ids: %v", len(want), err)
			}
			want, ok = nil, false
		}
		if (err == nil) != ok || !slices.Equal(got, append(before, want...)) {
			t.Fatalf("%q: %v, %v; want %v", raw, got, err, want)
		}
	})
}

// FuzzTakeIDs walks a body with TakeIDs for its prompt and without: what is read
// and where reading ends is the same.
func FuzzTakeIDs(f *testing.F) {
	for _, s := range idLists {
		for _, rest := range []string{`}`, `,"n":1}`, ` , "x":[2]}`, `,}`, ``, `]`, `,"prompt":[5]}`, `} {}`, `.0}`, `1}`, `e3}`, `"}`, `[}`} {
			f.Add(s, rest)
		}
	}
	f.Fuzz(func(t *testing.T, raw, rest string) {
		body := []byte(`{"a":"b", "prompt" : ` + raw + rest)
		got, at, err := walk(body, true)
		want, wantAt, wantErr := walk(body, false)
		if got != want || at != wantAt || (err == nil) != (wantErr == nil) {
			t.Fatalf("%s:\n got %s to %d, %v\nwant %s to %d, %v", body, got, at, err, want, wantAt, wantErr)
		}
	})
}

// walk reads an object and tells its members, the offset where it ended and why.
func walk(body []byte, take bool) (seen string, at int64, err error) {
	d := tokenizer.NewDecoder(body)
	var b strings.Builder
	err = tokenizer.Members(d, func(name []byte) error {
		fmt.Fprintf(&b, "%s=", name)
		prompt := string(name) == "prompt"
		var ids []uint32
		if d.PeekKind() == '[' && prompt && take {
			list, shift, ok := tokenizer.TakeIDs(d, 1000)
			if at += shift; ok {
				ids = list
			}
		}
		if ids == nil {
			raw, err := d.ReadValue()
			if err != nil {
				return err
			}
			if ids, err = tokenizer.AppendIDs(nil, raw, 1000); err != nil || len(ids) == 0 {
				b.Write(raw)
			}
		}
		out, err := json.Marshal(ids)
		b.Write(append(out, ';'))
		return err
	})
	if err == nil {
		err = tokenizer.End(d)
	}
	return b.String(), at + d.InputOffset(), err
}

// The long prompt of a body is taken in one pass, whatever stands around it. But
// of arrays that are all too short to be worth it none is: each would have the
// rest of the body copied.
func TestTakeIDs(t *testing.T) {
	long := strings.Repeat("15123, ", 100) + "7"
	for _, c := range []struct {
		name, body string
		taken      int
	}{
		{"alone", `{"prompt":[` + long + `]}`, 1},
		{"between", `{"model":"m", "prompt" : [` + long + `] , "n":1}`, 1},
		{"a float", `{"prompt":[` + long + `.0]}`, 0},
		{"cut", `{"prompt":[` + long, 0},
		{"many short", `{` + strings.Repeat(`"prompt":[1],`, 1000) + `"model":"m"}`, 0},
	} {
		taken := 0
		d := tokenizer.NewDecoder([]byte(c.body))
		err := tokenizer.Members(d, func([]byte) error {
			if d.PeekKind() == '[' {
				if ids, _, ok := tokenizer.TakeIDs(d, 1000); ok {
					taken += min(len(ids), 1)
					return nil
				}
			}
			return d.SkipValue()
		})
		if taken != c.taken || (err == nil) != (c.name != "cut") {
			t.Errorf("%s: %d arrays taken, want %d; %v", c.name, taken, c.taken, err)
		}
	}
}
