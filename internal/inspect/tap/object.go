package tap

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"

	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/recording"
	"github.com/eppctl/eppctl/internal/inspect/out"
)

const apiVersion = "eppctl/v1"

// Event is one event of a message; kind Event.
type Event struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	At         string   `json:"at"` // received
	Pod        string   `json:"pod"`
	Rank       int      `json:"rank"`
	Engine     *string  `json:"engine"`
	Model      *string  `json:"model"`
	Seq        uint64   `json:"seq"`
	Replayed   bool     `json:"replayed"`
	Event      string   `json:"event"` // stored, removed, cleared
	Tier       string   `json:"tier"`
	Medium     *string  `json:"medium"` // the wire's word
	Hashes     []string `json:"hashes"` // the engine's, 16 hexadecimal digits
	Parent     *string  `json:"parent"`
	Tokens     int      `json:"tokens"`              // how many
	TokenIDs   []uint32 `json:"token_ids,omitempty"` // with --show-tokens
	BlockSize  *int     `json:"block_size"`
	LoRA       *string  `json:"lora"`
	LoRAID     *int64   `json:"lora_id"` // the wire's number, where it has one
	Salt       *string  `json:"salt"`
	Group      int      `json:"group"`
	SpecKind   *string  `json:"spec_kind"`
	Layout     string   `json:"layout"`
	HashForm   *string  `json:"hash_form"`
	Topic      *string  `json:"topic"`
	EngineAt   *string  `json:"engine_at"` // when the engine stamped the batch
	LagUs      *int64   `json:"lag_us"`    // below zero: the clocks differ
}

func eventObject(e *Entry, ev *event.Event, tokens bool) *Event {
	o := &Event{
		APIVersion: apiVersion, Kind: "Event", At: stamp(e.At), Pod: nameOf(e.Pod), Seq: e.Seq, Replayed: e.Replayed,
		Event: ev.Kind.String(), Tier: tierName(ev), Medium: optional(ev.Medium), Hashes: make([]string, len(ev.Hashes)),
		Tokens: len(ev.Tokens), LoRA: optional(ev.LoRA), Salt: optional(ev.Salt), Group: ev.Group, SpecKind: optional(ev.SpecKind),
		Layout: ev.Layout, HashForm: optional(ev.HashForm), Topic: optional(e.Topic), Model: optional(e.model()),
	}
	if e.Pod != nil {
		o.Rank = e.Pod.Rank
	}
	if name := engineName(e.Pod); name != "-" {
		o.Engine = &name
	}
	if ev.LoRAID >= 0 {
		o.LoRAID = &ev.LoRAID
	}
	for i, h := range ev.Hashes {
		o.Hashes[i] = hexHash(h)
	}
	if ev.HasParent {
		p := hexHash(ev.Parent)
		o.Parent = &p
	}
	if ev.BlockSize > 0 {
		o.BlockSize = &ev.BlockSize
	}
	if tokens {
		o.TokenIDs = ev.Tokens
	}
	if e.Batch.At > 0 {
		at := stamp(int64(e.Batch.At * 1e9))
		o.EngineAt = &at
	}
	if lag, ok := e.lag(); ok {
		us := lag / 1000
		o.LagUs = &us
	}
	return o
}

func hexHash(h uint64) string { return fmt.Sprintf("%016x", h) }

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// Frame is a message as it came; kind Frame, with --raw.
type Frame struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	At         string   `json:"at"`
	Pod        string   `json:"pod"`
	Rank       int      `json:"rank"`
	Seq        *uint64  `json:"seq"`
	Replayed   bool     `json:"replayed"`
	Parts      []string `json:"parts"` // hexadecimal
	Faults     []Fault  `json:"faults"`
}

// Fault is one thing that could not be read.
type Fault struct {
	Offset *int   `json:"offset"`
	Field  string `json:"field"`
	Why    string `json:"why"`
}

func frameObject(e *Entry) *Frame {
	o := &Frame{
		APIVersion: apiVersion, Kind: "Frame", At: stamp(e.At), Pod: nameOf(e.Pod), Replayed: e.Replayed,
		Parts: make([]string, len(e.Parts)), Faults: []Fault{},
	}
	if e.Pod != nil {
		o.Rank = e.Pod.Rank
	}
	if e.HasSeq {
		o.Seq = &e.Seq
	}
	for i, p := range e.Parts {
		o.Parts[i] = hex.EncodeToString(p)
	}
	for _, f := range e.faults() {
		x := Fault{Field: f.field, Why: f.why}
		if f.offset >= 0 {
			x.Offset = &f.offset
		}
		o.Faults = append(o.Faults, x)
	}
	return o
}

// objects prints JSON objects: one per line, as a list, or as YAML documents.
type objects struct {
	w      io.Writer
	form   string // jsonl, json, yaml
	raw    bool
	tokens bool
	begun  bool
}

func (p *objects) event(e *Entry, ev *event.Event) { p.put(eventObject(e, ev, p.tokens)) }
func (p *objects) notice(n *Notice)                { p.put(n) }

func (p *objects) message(e *Entry) {
	if p.raw && (e.Type == recording.TypeFrame || e.Type == recording.TypeReplay) {
		p.put(frameObject(e))
	}
}

func (p *objects) put(v any) {
	b, err := json.Marshal(v)
	if err != nil {
		return // cannot be: strings and numbers
	}
	b = out.JSON(b)
	switch p.form {
	case "yaml":
		text, err := out.YAML(b)
		if err != nil {
			return // cannot be: it is JSON
		}
		b = append([]byte("---\n"), text...)
	case "json":
		sep := ",\n"
		if !p.begun {
			sep = "[\n"
		}
		b = append([]byte(sep), b...)
	default:
		b = append(b, '\n')
	}
	p.begun = true
	_, _ = p.w.Write(b) // gathers, never fails
}

func (p *objects) close() {
	if p.form != "json" {
		return
	}
	end := "\n]\n"
	if !p.begun {
		end = "[]\n"
	}
	_, _ = io.WriteString(p.w, end)
}
