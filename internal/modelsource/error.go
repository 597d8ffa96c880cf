package modelsource

import "github.com/eppctl/eppctl/internal/core/reason"

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

// Error is a failure with who has to act on it. It never holds the token.
type Error struct {
	Kind Kind
	reason.Failure
}
