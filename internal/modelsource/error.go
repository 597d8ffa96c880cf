package modelsource

import "strings"

// Kind is what an error means to who has to act on it.
type Kind uint8

// The kinds.
const (
	Failed      Kind = iota // of this machine: a disk, a folder's rights
	Invalid                 // a name, revision, setting or file that cannot be used
	Missing                 // there is no such model, revision, file or cache entry
	Forbidden               // the hub wants a token, or another one
	Unreachable             // the hub cannot be reached, or fails
	Damaged                 // what came is not what the hub announced
)

// Error says what failed, why, and what to do about it. It never holds the token.
type Error struct {
	Kind Kind
	What string // with the value that failed
	Why  string
	Hint string
	Err  error // cause, may be nil
}

func (e *Error) Error() string {
	parts := []string{e.What}
	for _, s := range []string{e.Why, e.Hint} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, "; ")
}

func (e *Error) Unwrap() error { return e.Err }
