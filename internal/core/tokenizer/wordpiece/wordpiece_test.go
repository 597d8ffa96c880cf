package wordpiece

import (
	"slices"
	"strings"
	"testing"
)

func TestAppend(t *testing.T) {
	m, err := New(map[string]uint32{"[UNK]": 0, "un": 1, "##able": 2, "##a": 3, "##ff": 4, "é": 5, "##é": 6, "##": 7, "unf": 8}, "##", "[UNK]", 8)
	if err != nil {
		t.Fatal(err)
	}
	// unf leaves fable, of which there is no entry.
	for word, want := range map[string][]uint32{
		"unffable": {0}, "unable": {1, 2}, "unaff": {1, 3, 4}, "éé": {5, 6}, "able": {0}, "unx": {0}, "##able": {2}, "##": {7}, "": nil,
		"éééééééé": {5, 6, 6, 6, 6, 6, 6, 6}, "ééééééééé": {0},
	} {
		if got := m.Append([]uint32{9}, word); !slices.Equal(got[1:], want) || got[0] != 9 {
			t.Errorf("%s: %v", word, got)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for want, err := range map[string]error{
		`unk_token "x"`: second(New(map[string]uint32{"a": 0}, "##", "x", 100)),
		"limit":         second(New(map[string]uint32{"x": 0}, "##", "x", MaxChars+1)),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func second(_ *Model, err error) error { return err }
