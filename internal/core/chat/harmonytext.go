package chat

import "strings"

// harmonyText is a prompt of the format on its way. The engine encodes each text apart,
// and none of it as a special token, whatever stands there.
type harmonyText struct {
	b     strings.Builder
	apart []int
	open  bool // a text was the last thing that was written
}

// token writes a special token.
func (t *harmonyText) token(name string) {
	t.b.WriteString(name)
	t.open = false
}

// text writes a text that is encoded apart from the one before.
func (t *harmonyText) text(s string) {
	if s == "" {
		return
	}
	at := t.b.Len()
	if t.open {
		t.apart = append(t.apart, at)
	}
	for _, inside := range lookalikes(s) {
		t.apart = append(t.apart, at+inside)
	}
	t.b.WriteString(s)
	t.open = true
}

// lookalikes are where a text is parted, so that what is written in it like a special
// token is none: behind the "<|" of each. The pattern of gpt-oss's tokenizer parts it
// there as well: both characters are always in one run of signs, which a letter ends.
func lookalikes(s string) (at []int) {
	for from := 0; ; {
		i := strings.Index(s[from:], "<|")
		if i < 0 {
			return at
		}
		from += i + len("<|")
		if name := strings.IndexFunc(s[from:], notOfToken); name > 0 && strings.HasPrefix(s[from+name:], "|>") && 'a' <= s[from] && s[from] <= 'z' {
			at = append(at, from)
		}
	}
}

// notOfToken: the names of gpt-oss's special tokens are made of small letters, digits and
// underscores, and begin with a letter.
func notOfToken(c rune) bool {
	return c != '_' && (c < 'a' || c > 'z') && (c < '0' || c > '9')
}
