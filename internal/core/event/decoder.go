package event

import (
	"errors"
	"fmt"

	"github.com/tinylib/msgp/msgp"
)

// Caps on one batch. An engine's step stores what it computed (tens of
// thousands of tokens) and SGLang one radix node (a prompt); vLLM removes one
// hash per event, one per allocated block. The caps lie far above both and keep
// a hostile 16 MiB frame to some tens of MiB.
const (
	maxEvents = 1 << 16
	maxTokens = 1 << 22 // per event
	maxHashes = 1 << 20 // per event
)

var (
	errJSON       = errors.New("it looks like JSON, and publishers of KV events write msgpack")
	errNotBatch   = errors.New("neither [ts, events, rank] nor a map of them")
	errManyEvents = fmt.Errorf("more than %d events", maxEvents)
)

// PayloadError is a payload that has no structure to go on from. Offset is where
// the event begins that ends it, 0 when it is the batch itself.
type PayloadError struct {
	Size, Offset int
	Err          error
}

func (e *PayloadError) Error() string {
	if e.Offset > 0 {
		return fmt.Sprintf("kv event payload of %d bytes: event at offset %d: %v", e.Size, e.Offset, e.Err)
	}
	return fmt.Sprintf("kv event payload of %d bytes: %v", e.Size, e.Err)
}

func (e *PayloadError) Unwrap() error { return e.Err }

// Decoder reads the payloads of one or many sockets. It keeps nothing of a
// payload but the names it has seen; only of pulled events it keeps more, so that
// those of one stream need a decoder of their own. It is not safe for concurrent
// use.
type Decoder struct {
	names   interner
	raw     rawEvent
	slots   int    // of the batch, 0 = it is a map
	at      int    // offset of the event being read, 0 = none is
	reason  string // why the event being filled must be skipped
	pairs   bool   // the event being filled has pairs for tokens
	scratch []byte
	pulled  *PullDecoder // of JSON payloads, nil = there was none
}

// Decode reads one payload (the third frame) into b, whose former content and
// slices are lost. The layout is told by the bytes: batch as array or map, each
// event as array, map or bin. An event that cannot be understood is noted in
// b.Skipped and the others stand. An error means that the payload has no
// structure to go on from; b then holds no events. An event that PullDecoder
// reads is a payload too: so it is shown to who looks on.
func (d *Decoder) Decode(payload []byte, b *Batch) error {
	if len(payload) > 0 && payload[0] == '{' { // no msgpack batch: it would be the number 123
		if d.pulled == nil {
			d.pulled = &PullDecoder{}
		}
		return d.pulled.Decode(payload, b)
	}
	b.reset()
	d.at = 0
	if err := d.batch(payload, b); err != nil {
		b.reset()
		if errors.Is(err, errNotBatch) && len(payload) > 0 && (payload[0] == '[' || payload[0] == '"') {
			err = errJSON // as msgpack these are the numbers 91 and 34
		}
		return &PayloadError{len(payload), d.at, err}
	}
	return nil
}

func (d *Decoder) batch(payload []byte, b *Batch) error {
	t := msgp.NextType(payload)
	if t != msgp.ArrayType && t != msgp.MapType {
		return errNotBatch
	}
	n, rest, err := readHeader(payload, t)
	if err != nil {
		return err
	}
	d.slots = 0
	if t == msgp.ArrayType {
		if n < 2 {
			return errNotBatch
		}
		d.slots = n
		if n > slotOther {
			d.unknown(b, d.slot([]byte("batch"), slotOther))
		}
		for i := 0; i < n && err == nil; i++ {
			rest, err = d.batchField(min(i, slotOther), rest, len(payload), b)
		}
	} else {
		for i := 0; i < n && err == nil; i += 2 {
			key := rest
			if rest, err = skip(rest, 1); err == nil {
				slot := slotOf(key)
				if name, ok := readText(key); ok && slot == slotOther {
					d.scratch = append(append(d.scratch[:0], "batch."...), name...)
					d.unknown(b, d.scratch)
				}
				rest, err = d.batchField(slot, rest, len(payload), b)
			}
		}
	}
	b.Trailing = len(rest)
	return err
}

// The slots of an array batch.
const (
	slotTime = iota
	slotEvents
	slotRank
	slotOther
)

// slotOf returns the slot that a key of a map batch stands for.
func slotOf(key []byte) int {
	switch name, _ := readText(key); string(name) {
	case "ts":
		return slotTime
	case "events":
		return slotEvents
	case "data_parallel_rank", "attn_dp_rank":
		return slotRank
	}
	return slotOther
}

func (d *Decoder) batchField(slot int, v []byte, size int, b *Batch) (rest []byte, err error) {
	switch slot {
	case slotEvents:
		return d.events(v, size, b)
	case slotTime:
		b.At = readTime(v)
	case slotRank:
		if r, ok := readInt(v); ok && r >= 0 && r <= maxGroup {
			b.Rank = int(r)
		}
	}
	return skip(v, 1)
}

// events reads the list of events at the start of v. size is the payload's.
func (d *Decoder) events(v []byte, size int, b *Batch) (rest []byte, err error) {
	if msgp.IsNil(v) {
		return v[1:], nil
	}
	if msgp.NextType(v) != msgp.ArrayType {
		return nil, errNotBatch
	}
	n, rest, err := readHeader(v, msgp.ArrayType)
	if err != nil {
		return nil, err
	}
	if n > maxEvents-len(b.Events)-len(b.Skipped) {
		return nil, errManyEvents
	}
	for i := range n {
		d.at = size - len(rest)
		reason, err := "", error(nil)
		if rest, reason, err = d.raw.scan(rest, 2); err != nil {
			return nil, err
		}
		if reason == "" {
			reason = d.add(b)
		}
		if reason != "" {
			b.Skipped = append(b.Skipped, Skip{
				Index:   i,
				Offset:  d.at,
				Reason:  reason,
				Before:  len(b.Events),
				Tag:     d.names.get(d.raw.tag[:min(len(d.raw.tag), maxTag)]),
				Removes: d.raw.kind != Stored && (d.raw.kind != 0 || len(d.raw.tag) == 0),
			})
		}
		d.unknownParts(b)
	}
	d.at = 0
	return rest, nil
}

// add appends the scanned event to b, or says why it cannot.
func (d *Decoder) add(b *Batch) (reason string) {
	// The arenas are cut back when an event is given up half-way.
	tokens, hashes, extra := len(b.tokens), len(b.hashes), len(b.extra)
	b.Events = append(b.Events, Event{})
	if reason = d.fill(&b.Events[len(b.Events)-1], b); reason != "" {
		b.Events = b.Events[:len(b.Events)-1]
		b.tokens, b.hashes, b.extra = b.tokens[:tokens], b.hashes[:hashes], b.extra[:extra]
		return reason
	}
	if d.raw.kind == transferred {
		d.move(b)
	}
	return ""
}

// maxTime is in the year 2255: its nanoseconds still fit 64 bits.
const maxTime = 9e9

// readTime reads seconds since 1970. Mooncake sends integer milliseconds; an
// integer that large cannot be seconds of this era.
func readTime(b []byte) float64 {
	var at float64
	if msgp.NextType(b) == msgp.Float64Type {
		at, _, _ = msgp.ReadFloat64Bytes(b)
	} else if i, ok := readInt(b); ok {
		if at = float64(i); i > 1e11 {
			at /= 1e3
		}
	}
	if at >= 0 && at <= maxTime { // no NaN
		return at
	}
	return 0
}
