package recording

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
)

// Writer writes a recording. It names pods by itself: a record of a pod that it
// has not seen is preceded by that pod. Not for concurrent use. After an error it
// must not be used again.
type Writer struct {
	w    *bufio.Writer
	pods map[Pod]uint16
	body []byte
	size int64
}

// NewWriter begins a recording.
func NewWriter(w io.Writer, h Header) (*Writer, error) {
	text, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("recording header: %w", err)
	}
	if len(text) > maxHeader {
		return nil, fmt.Errorf("recording header of %d bytes, at most %d", len(text), maxHeader)
	}
	out := &Writer{w: bufio.NewWriterSize(w, 64<<10), pods: map[Pod]uint16{}}
	b := append([]byte(Magic), 0, version, 0, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(len(text)))
	return out, out.put(append(b, text...))
}

// Write appends a record. A record of TypePod is written once per pod.
func (w *Writer) Write(r *Record) error {
	number, err := w.number(r.Pod)
	if err != nil || r.Type == TypePod {
		return err
	}
	if len(r.Parts) > maxParts || r.Size() > MaxRecord {
		return fmt.Errorf("record of %d parts, %d bytes: at most %d and %d", len(r.Parts), r.Size(), maxParts, MaxRecord)
	}
	b := append(w.body[:0], byte(r.Type))
	if r.Type != TypeAccount {
		b = binary.BigEndian.AppendUint64(b, uint64(r.At))
	}
	switch r.Type {
	case TypeFrame, TypeReplay:
		b = binary.BigEndian.AppendUint16(b, number)
		b = binary.BigEndian.AppendUint16(b, uint16(len(r.Parts)))
		for _, p := range r.Parts {
			b = binary.BigEndian.AppendUint32(b, uint32(len(p)))
			b = append(b, p...)
		}
	case TypeNotice:
		text, err := json.Marshal(r.Notice)
		if err != nil {
			return fmt.Errorf("notice: %w", err)
		}
		b = binary.BigEndian.AppendUint16(b, number)
		b = append(b, text...)
	case TypePage:
		b = binary.BigEndian.AppendUint16(b, number)
		b = binary.BigEndian.AppendUint32(b, uint32(r.Status))
		b = append(b, r.Body...)
	case TypeSpec, TypeState:
		b = binary.BigEndian.AppendUint16(b, number)
		b = append(b, r.Body...)
	case TypeCard, TypeFleet, TypeDecision, TypeOutcome, TypeAccount:
		b = append(b, r.Body...)
	default:
		return fmt.Errorf("record of unknown type %d", r.Type)
	}
	w.body = b
	return w.record(b)
}

// number returns the number of a pod, which it may have to write first.
func (w *Writer) number(p *Pod) (uint16, error) {
	if p == nil {
		return noPod, nil
	}
	if n, ok := w.pods[*p]; ok {
		return n, nil
	}
	if len(w.pods) == maxPods {
		return 0, fmt.Errorf("more than %d pods in one recording", maxPods)
	}
	text, err := json.Marshal(p)
	if err != nil {
		return 0, fmt.Errorf("pod %q: %w", p.Name, err)
	}
	n := uint16(len(w.pods))
	w.pods[*p] = n
	b := binary.BigEndian.AppendUint16([]byte{byte(TypePod)}, n)
	return n, w.record(append(b, text...))
}

// record frames type and body.
func (w *Writer) record(b []byte) error {
	var around [4]byte
	binary.BigEndian.PutUint32(around[:], uint32(len(b)))
	if err := w.put(around[:]); err != nil {
		return err
	}
	if err := w.put(b); err != nil {
		return err
	}
	binary.BigEndian.PutUint32(around[:], crc32.Checksum(b, castagnoli))
	return w.put(around[:])
}

func (w *Writer) put(b []byte) error {
	n, err := w.w.Write(b)
	w.size += int64(n)
	return err
}

// Flush hands on what is buffered.
func (w *Writer) Flush() error { return w.w.Flush() }

// Size is the number of bytes written, buffered ones included.
func (w *Writer) Size() int64 { return w.size }

// Close ends the recording with its account, the JSON of an object. It does not
// close what it writes to.
func (w *Writer) Close(account []byte) error {
	if err := w.Write(&Record{Type: TypeAccount, Body: account}); err != nil {
		return err
	}
	return w.Flush()
}
