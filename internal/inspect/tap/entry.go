// Package tap shows what engines publish about their KV caches, message by
// message and before anything is made of it: from their sockets, from a running
// serve, or from a recording. All three give one stream of records, which goes
// one way: recorded, decoded, filtered, printed, counted.
package tap

import (
	"errors"
	"fmt"
	"strings"

	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/recording"
)

// Entry is a record and what could be read of it. It is valid until the next one
// is decoded.
type Entry struct {
	*recording.Record
	Replayed bool   // it is an answer of a replay port
	Topic    string // a hint: the socket says who it is
	Seq      uint64
	HasSeq   bool
	Payload  []byte
	Batch    *event.Batch // nil when it is no message or could not be read
	Bad      error        // why a message could not be read as a whole
}

// Consumer hears of every record, decoded, before any filter: in order and on one
// goroutine.
type Consumer interface {
	Take(e *Entry)
}

// decoder makes entries of records. Not for concurrent use.
type decoder struct {
	decoder event.Decoder
	pulled  map[*recording.Pod]*event.PullDecoder // of streams whose events build on each other
	batch   event.Batch
	entry   Entry
}

func (d *decoder) decode(r *recording.Record) *Entry {
	d.entry = Entry{Record: r, Replayed: r.Type == recording.TypeReplay}
	e := &d.entry
	switch r.Type {
	case recording.TypeFrame:
		e.Topic, e.Seq, e.Payload, e.Bad = event.ParseFrames(r.Parts)
	case recording.TypeReplay:
		e.Topic, e.Seq, e.Payload, e.Bad = event.ParseReply(r.Parts)
	default:
		return e
	}
	if e.Bad != nil {
		return e
	}
	e.HasSeq = true
	if e.Topic == event.LayoutPull {
		e.Bad = d.pull(r.Pod).Decode(e.Payload, &d.batch)
	} else {
		e.Bad = d.decoder.Decode(e.Payload, &d.batch)
	}
	if e.Bad == nil {
		e.Batch = &d.batch
	}
	return e
}

// pull is the decoder of a stream that was pulled, not published.
func (d *decoder) pull(p *recording.Pod) *event.PullDecoder {
	if d.pulled == nil {
		d.pulled = map[*recording.Pod]*event.PullDecoder{}
	}
	if d.pulled[p] == nil {
		d.pulled[p] = &event.PullDecoder{}
	}
	return d.pulled[p]
}

// lag is how long after its engine stamped it a live batch was received, in ns.
func (e *Entry) lag() (ns int64, known bool) {
	if e.Batch == nil || e.Batch.At <= 0 || e.Replayed {
		return 0, false
	}
	return e.At - int64(e.Batch.At*1e9), true
}

// skewed marks lags that are a difference of clocks.
func skewed(lag int64) bool { return lag < 0 || lag > 1e9 }

// model is the base model of the publisher, as configured or as its topic says.
func (e *Entry) model() string {
	if e.Pod != nil && e.Pod.Model != "" {
		return e.Pod.Model
	}
	if parts := strings.SplitN(e.Topic, "@", 3); len(parts) == 3 && parts[0] == "kv" {
		return parts[2]
	}
	return ""
}

// podName is the pod with its rank, where it has several.
func podName(p *recording.Pod) string {
	switch {
	case p == nil:
		return "-"
	case p.Ranks > 1:
		return fmt.Sprintf("%s:%d", p.Name, p.Rank)
	}
	return p.Name
}

func engineName(p *recording.Pod) string {
	if p == nil || p.Engine == "" || p.Engine == "unknown" {
		return "-"
	}
	return p.Engine
}

// tierName is the normalised tier of an event, in the words of --tier.
func tierName(ev *event.Event) string {
	switch {
	case ev.Shared:
		return "shared"
	case ev.Tier == event.TierHost:
		return "cpu"
	}
	return ev.Tier.String()
}

// fault is one thing of a message that could not be read.
type fault struct {
	offset int // in the payload; -1 = the message as a whole
	field  string
	why    string
	before int // how many events of the message come before it
	// unknown: it is an event of a kind that eppctl does not know, which is no
	// fault of the message.
	unknown bool
}

// faults lists what could not be read.
func (e *Entry) faults() (list []fault) {
	if e.Bad != nil {
		var fe *event.FramingError
		var pe *event.PayloadError
		field := "payload"
		if errors.As(e.Bad, &fe) || !e.HasSeq {
			field = "parts"
		}
		if errors.As(e.Bad, &pe) && pe.Offset > 0 {
			return []fault{{offset: pe.Offset, field: field, why: pe.Err.Error()}}
		}
		return []fault{{offset: -1, field: field, why: e.Bad.Error()}}
	}
	if e.Batch == nil {
		return nil
	}
	for _, s := range e.Batch.Skipped {
		field := s.Tag
		if field == "" {
			field = "tag"
		}
		f := fault{offset: s.Offset, field: field, why: fmt.Sprintf("event %d: %s", s.Index, s.Reason), before: s.Before}
		f.unknown = s.Reason == event.SkipUnknownTag
		list = append(list, f)
	}
	return list
}
