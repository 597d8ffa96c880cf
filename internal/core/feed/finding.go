package feed

import "fmt"

// Severity says what a Finding costs.
type Severity string

// The severities.
const (
	SeverityError   Severity = "error"   // requests fail or go to the wrong pod
	SeverityWarning Severity = "warning" // routing is worse than it could be
	SeverityInfo    Severity = "info"
)

// Finding is something about a pod that its operator should know: mostly that
// the configuration and the engine say different things. The configuration
// stands until someone changes it.
type Finding struct {
	Severity Severity `json:"severity"`
	Code     string   `json:"code"` // stable, for scripts
	Pod      string   `json:"pod"`
	Field    string   `json:"field,omitempty"`    // key of the pod's configuration
	Value    string   `json:"value,omitempty"`    // as configured
	Expected string   `json:"expected,omitempty"` // as the engine tells it
	Hint     string   `json:"hint,omitempty"`
}

func (f Finding) String() string {
	return fmt.Sprintf("%s: pod %s: %s", f.Severity, f.Pod, f.text())
}

// text is the finding without its severity and pod, for where both stand already.
func (f Finding) text() string {
	s := f.Code
	if f.Field != "" {
		s += ": " + f.Field
	}
	if f.Value != "" {
		s += fmt.Sprintf(" is %q", f.Value)
	}
	if f.Expected != "" {
		s += fmt.Sprintf(", the engine says %q", f.Expected)
	}
	if f.Hint != "" {
		s += " (" + f.Hint + ")"
	}
	return s
}
