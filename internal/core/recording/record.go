// Package recording is what event streams brought, as it came: records of raw
// frames and of what happened between them, a queue that hands them to whoever
// looks on (Hub), and the file format .eptap they are kept in (Writer, Reader).
// Nothing is decoded here, so that a recording outlives its decoder.
package recording

import "encoding/json"

// Type says what a record is. The numbers stand in files.
type Type uint8

// The types of records.
const (
	TypeFrame  Type = 1 // a message as its publisher sent it
	TypePod    Type = 2 // whose records follow
	TypeNotice Type = 3 // what happened to a stream
	TypePage   Type = 4 // an answer of a pod's metrics port
	TypeCard   Type = 5 // an Explanation
	TypeReplay Type = 6 // a message as the replay port answered it
	TypeSpec   Type = 7 // what is known of a pod besides; null = it left the fleet
	TypeState  Type = 8 // the state of a pod's stream
	// What serve decided. See Fleet, Decision and Outcome.
	TypeFleet    Type = 9
	TypeDecision Type = 10
	TypeOutcome  Type = 11
	TypeAccount  Type = 255 // the last one
)

// Record is one thing that happened. The records of one pod come in the order in
// which the feed dealt with them: replayed messages stand where they are missing,
// so that applying them in order, and forgetting the pod's blocks at each notice
// that says so, gives the feed's own index. Receive times may therefore step back.
//
// A record is immutable once it is published: several readers share its bytes.
type Record struct {
	Type   Type
	At     int64    // ns since 1970: when it was received, or happened
	Pod    *Pod     // nil: it is of no pod
	Parts  [][]byte // frame, replay: all parts of the message, verbatim
	Notice Notice   // notice
	Status int32    // page: HTTP status 200, or why there is no page: see PageMute
	Body   []byte   // page: as received, else why there is none; all others: JSON
}

// The statuses of a scrape that brought no page and no status of HTTP.
const (
	PageMute   = 0  // nothing answered
	PageFailed = -1 // what came is no page, or says nothing about the pod
)

// Size is about what the record holds in memory, in bytes.
func (r *Record) Size() int {
	n := recordOverhead + len(r.Body) + len(r.Notice.Why)
	for _, p := range r.Parts {
		n += partOverhead + len(p)
	}
	return n
}

const (
	recordOverhead = 256 // the struct and its Notice
	partOverhead   = 24  // a slice header
)

// Pod is whom a record is of, mostly a publisher: one rank of one pod. The socket tells who
// it is, never what it sends.
type Pod struct {
	Name      string `json:"name"`
	Addr      string `json:"addr"` // host:port dialled, or of the publisher that dialled us
	Rank      int    `json:"rank"`
	Ranks     int    `json:"ranks,omitempty"` // of the pod; more than one is shown
	Engine    string `json:"engine,omitempty"`
	Model     string `json:"model,omitempty"` // base model, "" = not known
	Direction string `json:"direction"`       // "dial" or "listen", see below
}

// The directions of a Pod. A pod as a whole, which specs and pages are of, has
// none; a node's device exporter is no pod at all, but has pages.
const (
	Dial     = "dial"
	Listen   = "listen"
	Exporter = "exporter"
)

// IsStream reports that its records are those of an event stream.
func (p *Pod) IsStream() bool { return p.Direction == Dial || p.Direction == Listen }

// The kinds of notices.
const (
	Up      = "up"      // connected
	Down    = "down"    // the connection could not be made, or ended
	Gap     = "gap"     // batches FromSeq..ToSeq did not come
	Replay  = "replay"  // a replay ended; Count batches came by it
	Restart = "restart" // the publisher is a new one, or may be
	Partial = "partial" // history is lost for good
	Dropped = "dropped" // Count messages were left out by us
)

// Notice is something that happened to a stream beside its messages.
type Notice struct {
	Kind    string  `json:"notice"`
	FromSeq *uint64 `json:"from_seq,omitempty"`
	ToSeq   *uint64 `json:"to_seq,omitempty"`
	Count   uint64  `json:"count,omitempty"`
	// Why is the reason, in words; may hold the peer's.
	Why string `json:"why,omitempty"`
	// Purged: whatever the pod was known to hold before this is forgotten.
	Purged bool `json:"purged,omitempty"`
	// Emptied: and the engine has none of it, since its process is another one.
	Emptied bool `json:"emptied,omitempty"`
	// TookMs is how long a replay took, Outcome how it ended.
	TookMs  int64  `json:"took_ms,omitempty"`
	Outcome string `json:"outcome,omitempty"`
}

// SourceRecording begins the Source of a copy: its records keep the times they had, all
// of them before it was begun.
const SourceRecording = "recording "

// Header begins a recording.
type Header struct {
	Program  string          `json:"program"`           // that wrote it: "eppctl 0.3.0"
	Host     string          `json:"host,omitempty"`    // it ran on
	Begun    string          `json:"begun"`             // RFC 3339
	Source   string          `json:"source"`            // "engines", "serve HOST:PORT", SourceRecording and files, …
	Filters  []string        `json:"filters,omitempty"` // what was left out on purpose; empty = nothing
	Complete bool            `json:"complete"`          // false; the account at the end says so
	Extra    json.RawMessage `json:"extra,omitempty"`
}
