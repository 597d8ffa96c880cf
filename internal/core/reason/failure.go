package reason

// Failure is what a person is told of something that failed. Errors that a person
// may have to act on embed it, each beside the kinds that its callers branch on.
type Failure struct {
	What string // failed, with the value that did
	Why  string
	Hint string // what to do about it
	Err  error  // cause, may be nil
}

func (f *Failure) Error() string {
	text := f.What
	for _, more := range []string{f.Why, f.Hint} {
		if more != "" {
			text += "; " + more
		}
	}
	return text
}

func (f *Failure) Unwrap() error { return f.Err }
