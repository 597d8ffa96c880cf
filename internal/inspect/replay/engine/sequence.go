package engine

// Sequence is one request on an engine.
type Sequence struct {
	ID             int
	Prompt, Output int      // tokens, both at least 1
	Blocks         []uint32 // of the prompt; the last may be partly filled
	Adapter        string

	Cached int // tokens found in the cache at the first admission

	computed  int // prompt tokens done
	generated int
	chunk     int // prompt tokens of the step under way
	decoding  bool
	shared    []uint32 // blocks it holds a reference to
	private   int      // blocks of its own: not full yet, or output
	answered  bool
}

func (s *Sequence) prefilled() bool { return s.computed >= s.Prompt }

// context is what one decode step attends to.
func (s *Sequence) context() int { return s.Prompt + s.generated }
