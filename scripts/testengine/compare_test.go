package main

import "testing"

// TestComparedWrong: equal ids have to be called equal, and others have to be found,
// with the position in the message.
func TestComparedWrong(t *testing.T) {
	same, other := question{name: "same"}, question{name: "other", differs: true}
	for _, tc := range []struct {
		c    compared
		want bool
	}{
		{compared{question: same, exit: 0, at: -1}, false},
		{compared{question: same, exit: 3, at: 4, told: true}, true},
		{compared{question: same, exit: 3, at: -1}, true},
		{compared{question: same, exit: 0, at: 4}, true},
		{compared{question: other, exit: 3, at: 0, told: true}, false},
		{compared{question: other, exit: 3, at: 0}, true},
		{compared{question: other, exit: 3, at: -1, told: true}, true},
		{compared{question: other, exit: 0, at: 0, told: true}, true},
		{compared{question: other, exit: 0, at: -1}, true},
	} {
		if tc.c.wrong() != tc.want {
			t.Errorf("%+v: wrong is %v", tc.c, tc.c.wrong())
		}
	}
	rows := compareReport([]compared{{question: same, at: -1}, {question: other, at: -1}})
	if len(rows) != 2 || rows[0].Value != 2 || rows[1].Value != 1 {
		t.Errorf("%+v", rows)
	}
}
