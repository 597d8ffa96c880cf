package event

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
)

// FramingError is a message that is not topic, sequence, payload. Frames and
// SeqBytes say what came instead: an engine without a sequence frame looks like
// silence otherwise.
type FramingError struct {
	Frames   int
	SeqBytes int // length of the second frame, when there are three
}

func (e *FramingError) Error() string {
	if e.Frames == 3 {
		return fmt.Sprintf("kv event message: sequence frame of %d bytes, want 8", e.SeqBytes)
	}
	return fmt.Sprintf("kv event message: %d frames, want 3", e.Frames)
}

// ParseFrames takes a published message apart: exactly topic, sequence (8 bytes,
// big-endian), payload. The topic ends at its first NUL, behind which SGLang
// appends an epoch; it is a hint for display and never says who the owner is.
// The payload is not copied. Any error is a *FramingError.
func ParseFrames(frames [][]byte) (topic string, seq uint64, payload []byte, err error) {
	if len(frames) != 3 {
		return "", 0, nil, &FramingError{Frames: len(frames)}
	}
	if len(frames[1]) != 8 {
		return "", 0, nil, &FramingError{Frames: 3, SeqBytes: len(frames[1])}
	}
	name, _, _ := bytes.Cut(frames[0], []byte{0})
	return string(name), binary.BigEndian.Uint64(frames[1]), frames[2], nil
}

// ReplayEnd is the sequence number of the last answer of a replay port, which
// holds no batch.
const ReplayEnd = math.MaxUint64

// ParseReply takes an answer of a replay port apart: an empty delimiter, a topic
// or none, sequence, payload. It looks from the end, because older engines leave
// out the topic. The payload is not copied.
func ParseReply(frames [][]byte) (topic string, seq uint64, payload []byte, err error) {
	n := len(frames)
	if n < 2 || len(frames[n-2]) != 8 {
		return "", 0, nil, fmt.Errorf("answer of a replay port: %d frames without a sequence of 8 bytes", n)
	}
	if n >= 4 {
		name, _, _ := bytes.Cut(frames[n-3], []byte{0})
		topic = string(name)
	}
	return topic, binary.BigEndian.Uint64(frames[n-2]), frames[n-1], nil
}
