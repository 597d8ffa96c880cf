package pick

import "github.com/eppctl/eppctl/internal/core/reason"

// zero says why a term of a row is nothing; None when it is something. A number that
// is 0 because nobody knows must not look like one that is 0 because all is well.
func (b *basis) zero(r *Row, t int) reason.Code {
	switch x := &terms[t]; {
	case r.Terms[t] != 0:
		return reason.None
	case x.factor != nil && *x.factor(b.policy) == 0:
		return reason.WeightZero
	case x.zero != nil:
		return x.zero(b, r)
	}
	return reason.Idle
}
