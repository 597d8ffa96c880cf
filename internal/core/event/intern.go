package event

// interner makes one string of equal byte strings. Media, adapters and salts
// repeat on every event; without it each would be an allocation.
type interner struct{ seen map[string]string }

// maxInterned bounds the table. A salt per tenant fills it in time; it then
// starts anew, which costs one allocation per name still in use.
const maxInterned = 4096

func (t *interner) get(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	if s, ok := t.seen[string(b)]; ok { // no copy: the compiler knows this form
		return s
	}
	if t.seen == nil || len(t.seen) >= maxInterned {
		t.seen = make(map[string]string)
	}
	s := string(b)
	t.seen[s] = s
	return s
}
