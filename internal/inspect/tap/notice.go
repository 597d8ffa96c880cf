package tap

import (
	"fmt"
	"slices"
	"strings"

	"github.com/eppctl/eppctl/internal/core/feed"
	"github.com/eppctl/eppctl/internal/core/recording"
)

// The kinds of notices that tap makes of messages: of what it cannot read, and of
// events of kinds that it does not know, which is nobody's fault.
const (
	badFrame     = "badframe"
	unknownEvent = "unknown"
)

// Notice is a row of our own; kind Notice. Filters do not touch it.
type Notice struct {
	APIVersion string  `json:"apiVersion"`
	Kind       string  `json:"kind"`
	At         string  `json:"at"`
	Pod        *string `json:"pod"` // null: of no pod
	Rank       int     `json:"rank"`
	// Notice is gap, replay, restart, partial, badframe, unknown, up, down or dropped.
	Notice  string  `json:"notice"`
	Seq     *uint64 `json:"seq"` // of the message that showed it
	FromSeq *uint64 `json:"from_seq"`
	ToSeq   *uint64 `json:"to_seq"`
	Count   uint64  `json:"count"`  // batches or messages it is about
	Offset  *int    `json:"offset"` // badframe, unknown: in the payload
	Field   *string `json:"field"`  // badframe: what could not be read; unknown: its kind
	Parts   *int    `json:"parts"`  // badframe, replay: parts of the message
	TookMs  *int64  `json:"took_ms"`
	Outcome *string `json:"outcome"` // replay: filled, failed, aborted
	Addr    *string `json:"addr"`    // up, down: of the publisher
	Why     string  `json:"why"`

	at     int64
	pod    *recording.Pod
	before int // events of its message that come before it
}

func (n *Notice) name() string   { return podName(n.pod) }
func (n *Notice) engine() string { return engineName(n.pod) }

func newNotice(e *Entry, kind string) *Notice {
	n := &Notice{APIVersion: apiVersion, Kind: "Notice", At: stamp(e.At), Notice: kind, at: e.At, pod: e.Pod}
	if e.Pod != nil {
		n.Pod, n.Rank = &e.Pod.Name, e.Pod.Rank
	}
	return n
}

// noticeOf is what a notice record says; parts is the number of parts that the
// pod's last replayed message had, 0 = none.
func noticeOf(e *Entry, parts int) *Notice {
	r := e.Notice
	n := newNotice(e, r.Kind)
	n.FromSeq, n.ToSeq, n.Count, n.Outcome, n.Why = r.FromSeq, r.ToSeq, r.Count, optional(r.Outcome), r.Why
	switch r.Kind {
	case recording.Up, recording.Down:
		if e.Pod != nil {
			n.Addr = optional(e.Pod.Addr)
		}
	case recording.Gap:
		if r.ToSeq != nil {
			next := *r.ToSeq + 1
			n.Seq = &next
		}
	case recording.Replay:
		n.Seq, n.TookMs = r.ToSeq, &r.TookMs
		if parts > 0 {
			n.Parts = &parts
		}
	}
	return n
}

// badFrames is what could not be read of a message, or made nothing of.
func badFrames(e *Entry) (list []*Notice) {
	for _, f := range e.faults() {
		kind := badFrame
		if f.unknown {
			kind = unknownEvent
		}
		n := newNotice(e, kind)
		n.before = f.before
		if e.HasSeq {
			n.Seq = &e.Seq
		} else {
			parts := len(e.Parts)
			n.Parts = &parts
		}
		if f.offset >= 0 {
			n.Offset = &f.offset
		}
		n.Field, n.Why = &f.field, f.why
		list = append(list, n)
	}
	return list
}

// strangers are the faults of a peer that may be something else, such as the
// engine's HTTP port.
var strangers = []feed.Fault{feed.FaultHandshake, feed.FaultProtocol}

// text says it in words.
func (n *Notice) text() string {
	switch n.Notice {
	case recording.Gap:
		return fmt.Sprintf("lost seq %d..%d", *orZero(n.FromSeq), *orZero(n.ToSeq))
	case recording.Replay:
		return n.replayText()
	case recording.Dropped:
		return "left out here: " + n.Why
	case recording.Up:
		at := ""
		if n.pod != nil {
			at = " to " + n.pod.Addr
			if n.pod.Direction == recording.Listen {
				at = " from " + n.pod.Addr
			}
		}
		return "connected" + at + ", " + n.Why
	case unknownEvent:
		return *n.Field + ": no event that eppctl knows; it is passed over"
	case recording.Down:
		if fault, _, _ := strings.Cut(n.Why, ": "); slices.Contains(strangers, feed.Fault(fault)) {
			return n.Why + "; no publisher of KV events? try: tap --check"
		}
	case badFrame:
		if n.Offset != nil {
			return fmt.Sprintf("offset %d, %s: %s", *n.Offset, *n.Field, n.Why)
		}
		return fmt.Sprintf("%s: %s", *n.Field, n.Why)
	}
	return n.Why
}

// The outcomes of a replay.
const (
	replayFilled = "filled"
	replayFailed = "failed"
)

// outcome is how a replay ended, "" for other notices.
func (n *Notice) outcome() string {
	if n.Outcome == nil {
		return ""
	}
	return *n.Outcome
}

func (n *Notice) replayText() string {
	text, took := n.outcome(), ""
	if n.TookMs != nil {
		took = fmt.Sprintf(" in %dms", *n.TookMs)
	}
	switch {
	case n.FromSeq != nil && n.ToSeq != nil:
		text = fmt.Sprintf("recovered seq %d..%d%s", *n.FromSeq, *n.ToSeq, took)
		if n.outcome() != replayFilled {
			text += ", then " + n.outcome()
		}
	case n.outcome() == replayFilled:
		text = "there was nothing to recover" + took
	default:
		text += took
	}
	if n.Parts != nil {
		// The first part of an answer is the delimiter.
		text += fmt.Sprintf(", answers of %d parts", *n.Parts-1)
	}
	if n.Why != "" {
		text += ": " + n.Why
	}
	return text
}

func orZero(n *uint64) *uint64 {
	if n == nil {
		return new(uint64)
	}
	return n
}
