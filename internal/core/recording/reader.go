package recording

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
	"time"
)

// Reader reads a recording. Not for concurrent use.
type Reader struct {
	r       *bufio.Reader
	header  Header
	begun   int64 // ns, as the header says; 0 = it does not, or of a copy
	pods    map[uint16]*Pod
	offset  int64 // of the next record
	unknown uint64
	ended   error // what Next returns from now on
}

// NewReader reads the beginning of a recording.
func NewReader(r io.Reader) (*Reader, error) {
	in := &Reader{r: bufio.NewReaderSize(r, 64<<10), pods: map[uint16]*Pod{}}
	return in, in.begin()
}

// begin checks magic and version and reads the header.
func (r *Reader) begin() error {
	b, err := r.take(prefixBytes)
	switch {
	case strings.HasPrefix(string(b), textMagic):
		return r.fail(ErrNoRecording, "its line ends were converted: copy it in binary mode")
	case len(b) == 0 || !strings.HasPrefix(Magic, string(b[:min(len(b), len(Magic))])):
		return r.fail(ErrNoRecording, "it does not begin as one")
	case err != nil:
		return r.fail(ErrCut, "inside the file's first bytes")
	}
	if v := binary.BigEndian.Uint16(b[len(Magic):]); v != version {
		return r.fail(ErrVersion, fmt.Sprintf("version %d, this program reads %d", v, version))
	}
	if f := binary.BigEndian.Uint16(b[len(Magic)+2:]); f != 0 {
		return r.fail(ErrVersion, fmt.Sprintf("flags %#04x are not known to this program", f))
	}
	length, err := r.take(4)
	if err != nil {
		return r.fail(ErrCut, "inside the header")
	}
	n := binary.BigEndian.Uint32(length)
	if n > maxHeader {
		return r.fail(ErrDamaged, fmt.Sprintf("header of %d bytes, at most %d", n, maxHeader))
	}
	text, err := r.take(int(n))
	if err != nil {
		return r.fail(ErrCut, "inside the header")
	}
	if err := json.Unmarshal(text, &r.header); err != nil {
		return r.fail(ErrDamaged, "the header is not read: "+err.Error())
	}
	if at, err := time.Parse(time.RFC3339Nano, r.header.Begun); err == nil && !strings.HasPrefix(r.header.Source, SourceRecording) {
		r.begun = at.UnixNano()
	}
	r.offset = int64(prefixBytes + 4 + int(n))
	return nil
}

// textMagic is what text mode makes of the magic.
const textMagic = "\x89EPTAP\n"

// Header is what the recording says of itself.
func (r *Reader) Header() Header { return r.header }

// Offset is the number of bytes read of whole records.
func (r *Reader) Offset() int64 { return r.offset }

// Unknown counts the records of unknown types that were passed over.
func (r *Reader) Unknown() uint64 { return r.unknown }

// Next returns the next record, whose bytes are the caller's. It returns io.EOF
// behind the account, and a FormatError, for ever, where the recording ends
// without one or is damaged. Other errors are those of the underlying reader.
func (r *Reader) Next() (*Record, error) {
	for r.ended == nil {
		b, err := r.body()
		if err != nil {
			return nil, err
		}
		rec, err := r.parse(Type(b[0]), b[1:])
		if err != nil {
			return nil, r.fail(ErrDamaged, err.Error())
		}
		r.offset += int64(len(b) + 8)
		if rec == nil {
			r.unknown++
			continue
		}
		if rec.Type == TypeAccount {
			r.ended = io.EOF
		}
		r.clamp(rec)
		return rec, nil
	}
	return nil, r.ended
}

// clamp keeps a recording from beginning before it did: what stood already when it
// was begun, a connection of hours ago, is told at its begin.
func (r *Reader) clamp(rec *Record) {
	if rec.At > 0 && Stands(rec) {
		rec.At = max(rec.At, r.begun)
	}
}

// body reads type and body of the next record.
func (r *Reader) body() ([]byte, error) {
	length, err := r.take(4)
	if err != nil {
		return nil, r.cut(err, len(length) == 0)
	}
	n := binary.BigEndian.Uint32(length)
	if n == 0 || n > MaxRecord {
		return nil, r.fail(ErrDamaged, fmt.Sprintf("record of %d bytes, expected 1 to %d", n, MaxRecord))
	}
	b, err := r.take(int(n))
	if err != nil {
		return nil, r.cut(err, false)
	}
	sum, err := r.take(4)
	if err != nil {
		return nil, r.cut(err, false)
	}
	if got, want := crc32.Checksum(b, castagnoli), binary.BigEndian.Uint32(sum); got != want {
		return nil, r.fail(ErrDamaged, fmt.Sprintf("checksum %08x, the record says %08x", got, want))
	}
	return b, nil
}

// cut is what the end of the bytes means.
func (r *Reader) cut(err error, between bool) error {
	switch {
	case !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		r.ended = err
		return err
	case between:
		return r.fail(ErrCut, "no account follows")
	}
	return r.fail(ErrCut, "inside a record")
}

func (r *Reader) fail(err error, detail string) error {
	r.ended = &FormatError{err, r.offset, detail}
	return r.ended
}

// takeStep is how far a buffer grows ahead of the bytes that have come: a length
// alone costs nothing.
const takeStep = 64 << 10

// take reads n bytes; with an error it returns those that came.
func (r *Reader) take(n int) ([]byte, error) {
	var b []byte
	for len(b) < n {
		step := min(n-len(b), max(takeStep, len(b)))
		from := len(b)
		b = append(b, make([]byte, step)...)
		got, err := io.ReadFull(r.r, b[from:])
		if err != nil {
			return b[:from+got], err
		}
	}
	return b, nil
}

// parse reads a body; a record of an unknown type is nil.
func (r *Reader) parse(t Type, b []byte) (*Record, error) {
	rec := &Record{Type: t}
	c := cursor{b: b}
	switch t {
	case TypePod:
		return rec, r.pod(rec, &c)
	case TypeAccount:
		rec.Body = b
		return rec, nil
	case TypeFrame, TypeReplay, TypeNotice, TypePage, TypeSpec, TypeState:
		rec.At = int64(c.u64())
	case TypeCard, TypeFleet, TypeDecision, TypeOutcome:
		rec.At = int64(c.u64())
		rec.Body = c.b
	default:
		return nil, nil
	}
	if ofPod(t) {
		if n := c.u16(); n != noPod {
			if rec.Pod = r.pods[n]; rec.Pod == nil && !c.short {
				return nil, fmt.Errorf("record of pod %d, which no record names", n)
			}
		}
	}
	switch t {
	case TypeFrame, TypeReplay:
		n := int(c.u16())
		if n*4 > len(c.b) {
			return nil, fmt.Errorf("message of %d parts in %d bytes", n, len(c.b))
		}
		rec.Parts = make([][]byte, n)
		for i := range rec.Parts {
			rec.Parts[i] = c.bytes(c.u32())
		}
		if len(c.b) > 0 {
			return nil, fmt.Errorf("%d bytes behind the last part", len(c.b))
		}
	case TypeNotice:
		if err := json.Unmarshal(c.b, &rec.Notice); err != nil {
			return nil, fmt.Errorf("notice: %w", err)
		}
	case TypePage:
		rec.Status = int32(c.u32())
		rec.Body = c.b
	case TypeSpec, TypeState:
		rec.Body = c.b
	}
	if c.short {
		return nil, errors.New("record is too short for its type")
	}
	return rec, nil
}

// ofPod reports whether records of a type name a pod behind their time.
func ofPod(t Type) bool {
	switch t {
	case TypeCard, TypeFleet, TypeDecision, TypeOutcome:
		return false
	}
	return true
}

func (r *Reader) pod(rec *Record, c *cursor) error {
	n := c.u16()
	rec.Pod = &Pod{}
	if err := json.Unmarshal(c.b, rec.Pod); err != nil {
		return fmt.Errorf("pod %d: %w", n, err)
	}
	if n == noPod || r.pods[n] != nil {
		return fmt.Errorf("pod number %d is taken", n)
	}
	r.pods[n] = rec.Pod
	return nil
}

// cursor takes a body apart. Reading beyond its end gives zeros and sets short.
type cursor struct {
	b     []byte
	short bool
}

func (c *cursor) bytes(n uint32) []byte {
	if uint64(n) > uint64(len(c.b)) {
		c.b, c.short = nil, true
		return nil
	}
	out := c.b[:n:n]
	c.b = c.b[n:]
	return out
}

func (c *cursor) u16() uint16 {
	if b := c.bytes(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

func (c *cursor) u32() uint32 {
	if b := c.bytes(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (c *cursor) u64() uint64 {
	if b := c.bytes(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}
