package event

import (
	"errors"
	"fmt"
	"math"

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
	errNotBatch   = errors.New("neither [ts, events, rank] nor a map of them")
	errManyEvents = fmt.Errorf("more than %d events", maxEvents)
)

// Decoder reads the payloads of one or many sockets. It keeps nothing of a
// payload but the names it has seen. It is not safe for concurrent use.
type Decoder struct {
	names  interner
	raw    rawEvent
	reason string // why the event being filled must be skipped
}

// Decode reads one payload (the third frame) into b, whose former content and
// slices are lost. The layout is told by the bytes: batch as array or map, each
// event as array, map or bin. An event that cannot be understood is noted in
// b.Skipped and the others stand. An error means that the payload has no
// structure to go on from; b then holds no events.
func (d *Decoder) Decode(payload []byte, b *Batch) error {
	b.reset()
	if err := d.batch(payload, b); err != nil {
		b.reset()
		return fmt.Errorf("kv event payload of %d bytes: %w", len(payload), err)
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
	if t == msgp.ArrayType {
		if n < 2 {
			return errNotBatch
		}
		for i := 0; i < n && err == nil; i++ {
			rest, err = d.batchField(min(i, slotOther), rest, len(payload), b)
		}
	} else {
		for i := 0; i < n && err == nil; i += 2 {
			key := rest
			if rest, err = skip(rest, 1); err == nil {
				rest, err = d.batchField(slotOf(key), rest, len(payload), b)
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
		start := rest
		reason, err := "", error(nil)
		if rest, reason, err = d.raw.scan(rest, 2); err != nil {
			return nil, err
		}
		if reason == "" {
			reason = d.add(b)
		}
		if reason != "" {
			b.Skipped = append(b.Skipped, Skip{
				Index:  i,
				Offset: size - len(start),
				Reason: reason,
				Tag:    d.names.get(d.raw.tag[:min(len(d.raw.tag), maxTag)]),
			})
		}
	}
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
	}
	return reason
}

// readTime reads seconds since 1970. Mooncake sends integer milliseconds; an
// integer that large cannot be seconds of this era.
func readTime(b []byte) float64 {
	switch msgp.NextType(b) {
	case msgp.Float64Type:
		if f, _, _ := msgp.ReadFloat64Bytes(b); f >= 0 && f <= math.MaxInt64 { // no NaN
			return f
		}
		return 0
	}
	i, ok := readInt(b)
	if !ok {
		return 0
	}
	if i > 1e11 {
		return float64(i) / 1e3
	}
	return float64(i)
}
