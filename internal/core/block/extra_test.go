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

func TestExtraStringEqualsBytes(t *testing.T) {
	const s = "sha256:0123456789abcdef"
	if ExtraString(0, s) != ExtraString(0, []byte(s)) {
		t.Error("a string and its bytes differ")
	}
	if n := testing.AllocsPerRun(100, func() { ExtraString(0, s) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
