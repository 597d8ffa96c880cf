package block

import "testing"

func TestExtraTellsContentApart(t *testing.T) {
	seen := map[Extra]string{0: "nothing"}
	add := func(name string, e Extra) {
		t.Helper()
		if old, dup := seen[e]; dup {
			t.Errorf("%s and %s have one digest", name, old)
		}
		seen[e] = name
	}
	add("empty string", ExtraString(0, ""))
	add("NUL", ExtraString(0, "\x00"))
	add("a", ExtraString(0, "a"))
	add("8 bytes", ExtraString(0, "12345678"))
	add("8 bytes and NUL", ExtraString(0, "12345678\x00"))
	add("a then b", ExtraString(ExtraString(0, "a"), "b"))
	add("b then a", ExtraString(ExtraString(0, "b"), "a"))
	add("ab", ExtraString(0, "ab"))
	add("int 0", ExtraInt(0, 0))
	add("int 1", ExtraInt(0, 1))
	add("image at 0", ExtraInt(ExtraString(0, "img"), 0))
	add("image at 7", ExtraInt(ExtraString(0, "img"), 7))
}
