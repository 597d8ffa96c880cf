package check

import (
	"cmp"
	"errors"
	"fmt"
	"hash/maphash"

	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/recording"
)

// stream is what one publisher sent, seen by whether the picker can route by it:
// the messages go through the very decoder and index that serve has. It opens
// nothing and reads no clock, so that it judges a live socket, a recording and the
// frames of a running serve alike. One goroutine uses it at a time.
type stream struct {
	Pod  pod.Spec
	Rank int

	messages int            // live ones of any shape
	shapes   map[string]int // messages that are no batch, by what they were
	topics   map[string]int
	seq      sequence
	delay    delays
	ups      int
	up       int64  // when it was first connected, in ns
	down     string // why there is no connection
	dropped  uint64 // messages that we were too slow for
	replay   replays
	content  content

	dec     event.Decoder
	batch   event.Batch
	seed    maphash.Seed
	digests map[uint64]uint64 // of payloads, by sequence number
}

// Bounds of what a stream that means harm can make us remember.
const (
	maxKeys    = 16      // of each of the tallies
	maxDigests = 1 << 14 // more than vLLM's replay buffer holds (buffer_steps 10000)
)

// newStream returns one that has seen nothing. The pod is as the configuration,
// completed by what the engine tells, has it.
func newStream(spec pod.Spec, rank int) *stream {
	return &stream{
		Pod: spec, Rank: rank, shapes: map[string]int{}, topics: map[string]int{},
		content: newContent(spec), seed: maphash.MakeSeed(), digests: map[uint64]uint64{},
	}
}

// Record takes the next record of the stream, in the order of a recording.
func (s *stream) Record(r *recording.Record) {
	switch r.Type {
	case recording.TypeFrame:
		s.message(r.Parts, r.At)
	case recording.TypeReplay:
		s.replayed(r.Parts, r.At)
	case recording.TypeNotice:
		s.notice(&r.Notice, r.At)
	}
}

func (s *stream) message(parts [][]byte, at int64) {
	s.messages++
	topic, seq, payload, err := event.ParseFrames(parts)
	if err != nil {
		count(s.shapes, shape(err))
		return
	}
	count(s.topics, topic)
	if s.seq.next(seq) {
		s.restart()
	}
	if s.take(seq, payload, at) {
		s.delay.add(s.batch.At, at)
	}
}

// replayed takes an answer of the replay port.
func (s *stream) replayed(parts [][]byte, at int64) {
	_, seq, payload, err := event.ParseReply(parts)
	if err != nil {
		return
	}
	s.replay.add(seq)
	s.take(seq, payload, at)
}

// take reads a batch, unless it has come before, live or by a replay; false if it
// cannot be decoded.
func (s *stream) take(seq uint64, payload []byte, at int64) bool {
	d := maphash.Bytes(s.seed, payload)
	before, again := s.digests[seq]
	switch {
	case again && before != d:
		s.replay.differ++
		return false
	case again:
		return false
	case len(s.digests) < maxDigests:
		s.digests[seq] = d
	}
	return s.content.take(&s.dec, &s.batch, seq, payload, at)
}

func (s *stream) notice(n *recording.Notice, at int64) {
	switch n.Kind {
	case recording.Up:
		if s.ups++; s.ups == 1 {
			s.up = at
		}
		s.down, s.seq.open = "", false
	case recording.Down:
		s.down = cmp.Or(n.Why, "it was closed")
	case recording.Dropped:
		s.dropped += n.Count
		s.seq.open = false
	case recording.Replay:
		s.replay.end(n)
	}
	if n.Purged {
		s.restart()
	}
}

// restart forgets what an earlier process of the engine told.
func (s *stream) restart() {
	s.content.ix.Purge(member)
	clear(s.digests)
}

// whole reports that the batches begin with the engine's first and none of them is
// missing. llm-d's simulator numbers from 1.
func (s *stream) whole() bool {
	return s.content.batches > 0 && s.content.first <= 1 && s.seq.lost == 0 && s.dropped == 0
}

// shape names what a message was instead of a batch.
func shape(err error) string {
	var fe *event.FramingError
	if errors.As(err, &fe) && fe.Frames == 3 {
		return fmt.Sprintf("a sequence of %d bytes", fe.SeqBytes)
	}
	if errors.As(err, &fe) {
		return fmt.Sprintf("%d frames", fe.Frames)
	}
	return err.Error()
}

// replays is what the replay port told.
type replays struct {
	batches     int
	first, last uint64
	differ      int    // batches that are others than those of their number before
	failed      string // why the last replay failed
}

func (r *replays) add(seq uint64) {
	if r.batches == 0 {
		r.first = seq
	}
	r.batches++
	r.last = max(r.last, seq)
}

// replayFailed is the Outcome of a replay that did not bring what is missing.
const replayFailed = "failed"

func (r *replays) end(n *recording.Notice) {
	r.failed = ""
	if n.Outcome == replayFailed {
		r.failed = n.Why
	}
}

// sequence follows the numbers of live batches.
type sequence struct {
	any, open bool // open: the last number is of this connection
	last      uint64
	gaps      int
	lost      uint64
	restarts  int
	repeats   int
}

// next takes a number and reports whether a new engine process began.
func (q *sequence) next(seq uint64) (restart bool) {
	switch {
	case !q.any:
	case seq == q.last:
		q.repeats++
	case seq < q.last:
		q.restarts++
		restart = true
	case q.open && seq > q.last+1:
		q.gaps++
		q.lost += seq - q.last - 1
	}
	q.any, q.open, q.last = true, true, seq
	return restart
}

// delays holds the extremes of arrival minus time stamp, in seconds. The engine's
// clock is another one than ours: only differences mean something.
type delays struct {
	any      bool
	min, max float64
}

func (d *delays) add(stamp float64, at int64) {
	if stamp == 0 {
		return
	}
	delay := float64(at)/1e9 - stamp
	if !d.any {
		d.any, d.min, d.max = true, delay, delay
	}
	d.min, d.max = min(d.min, delay), max(d.max, delay)
}
