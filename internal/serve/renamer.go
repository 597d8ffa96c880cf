package serve

import "bytes"

// renamer puts the name that the client asked for back into a response, where
// the engine names the model it served instead. It sees the bytes as they come:
// a member "model" with that value is found across chunk borders, and nothing
// else changes. In JSON text a quote inside a string has a backslash before it,
// so that no generated text can look like a member. Not safe for concurrent use.
type renamer struct {
	served, asked string
	held          []byte // the start of what may be a member
	last          byte   // the byte before held
}

var modelKey = []byte(`"model"`)

// maxMember bounds what is held back: the key, white space and the name.
const maxMember = 4 << 10

// next takes a piece of the response and returns what can go on to the client;
// end says that no more comes. The result may share memory with piece.
func (r *renamer) next(piece []byte, end bool) []byte {
	in := piece
	if len(r.held) > 0 {
		in = append(r.held, piece...)
		r.held = nil
	}
	var out []byte
	done := 0 // bytes of in that are dealt with
	for at := 0; ; {
		i := bytes.Index(in[at:], modelKey)
		if i < 0 {
			break
		}
		i += at
		at = i + len(modelKey)
		if r.before(in, i) == '\\' {
			continue
		}
		from, to, whole := memberString(in, at)
		if !whole && !end && len(in)-i < maxMember {
			return r.hold(append(out, in[done:i]...), in, i)
		}
		if s, ok := unquoted(in[from:to]); whole && ok && s == r.served {
			out = append(append(out, in[done:from]...), quoted(r.asked)...)
			done, at = to, to
		}
	}
	cut := len(in)
	if !end {
		cut -= overlap(in[done:], modelKey)
	}
	if done == 0 && cut == len(in) {
		out = in // unchanged: no copy
	} else {
		out = append(out, in[done:cut]...)
	}
	return r.hold(out, in, cut)
}

// before is the byte in front of in[i].
func (r *renamer) before(in []byte, i int) byte {
	if i > 0 {
		return in[i-1]
	}
	return r.last
}

// hold keeps in[from:] for the next piece.
func (r *renamer) hold(out, in []byte, from int) []byte {
	r.last = r.before(in, from)
	r.held = bytes.Clone(in[from:])
	return out
}

// memberString finds the string that is a member's value behind its key, which
// ends at i. An empty range means that the value is none; whole is false when
// more bytes are needed to tell.
func memberString(b []byte, i int) (from, to int, whole bool) {
	i = skipSpace(b, i)
	if i == len(b) {
		return i, i, false
	}
	if b[i] != ':' {
		return i, i, true
	}
	i = skipSpace(b, i+1)
	if i == len(b) {
		return i, i, false
	}
	if b[i] != '"' {
		return i, i, true
	}
	for j := i + 1; j < len(b); j++ {
		switch b[j] {
		case '\\':
			j++
		case '"':
			return i, j + 1, true
		}
	}
	return i, i, false
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

// overlap is the length of the longest end of b that key begins with.
func overlap(b, key []byte) int {
	for n := min(len(b), len(key)-1); n > 0; n-- {
		if bytes.HasSuffix(b, key[:n]) {
			return n
		}
	}
	return 0
}
