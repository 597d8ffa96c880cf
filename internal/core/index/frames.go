package index

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// A snapshot is a header and frames. All numbers are little-endian.
//
//	header  "eppctlix", version u16, 0 u16, seed u64, crc u32
//	frame   kind u8, length u32, payload, crc u32 of what is before it
//
// The checksum is CRC-32C. The last frame is of kind frameEnd: a stream without
// one was cut off. What the payloads hold is told in save.go.
const (
	snapshotMagic   = "eppctlix"
	snapshotVersion = 1

	headerSize = len(snapshotMagic) + 2 + 2 + 8 + 4
	frameHead  = 1 + 4
	// frameCut is where a writer begins the next frame, frameLimit what a reader
	// takes: the difference is more than any one record.
	frameCut   = 1 << 20
	frameLimit = 4 << 20
)

type frameKind uint8

const (
	frameMember frameKind = iota + 1
	frameRuns
	frameHashes
	frameChunks
	frameWindow
	frameEnd
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// SnapshotError says why a snapshot was refused, and where.
type SnapshotError struct {
	Offset int64 // in bytes, of the frame or header at fault
	Reason string
	Err    error // of the reader, if it is to blame
}

func (e *SnapshotError) Error() string {
	s := fmt.Sprintf("index snapshot, byte %d: %s", e.Offset, e.Reason)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *SnapshotError) Unwrap() error { return e.Err }

// frameWriter gathers frames until they are flushed, so that nobody's lock is
// held while w is slow.
type frameWriter struct {
	w    io.Writer
	buf  []byte
	open int // where the frame at hand begins, -1 = none is open
}

func (f *frameWriter) header(seed uint64) {
	b := append(f.buf, snapshotMagic...)
	b = binary.LittleEndian.AppendUint16(b, snapshotVersion)
	b = binary.LittleEndian.AppendUint16(b, 0)
	b = binary.LittleEndian.AppendUint64(b, seed)
	f.buf = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

func (f *frameWriter) begin(k frameKind) {
	f.open = len(f.buf)
	f.buf = append(f.buf, byte(k), 0, 0, 0, 0)
}

func (f *frameWriter) end() {
	b := f.buf[f.open:]
	binary.LittleEndian.PutUint32(b[1:], uint32(len(b)-frameHead))
	f.buf = binary.LittleEndian.AppendUint32(f.buf, crc32.Checksum(b, castagnoli))
}

// cut ends the frame and begins another of its kind when it is long enough.
func (f *frameWriter) cut() {
	if len(f.buf)-f.open >= frameCut {
		k := frameKind(f.buf[f.open])
		f.end()
		f.begin(k)
	}
}

func (f *frameWriter) uint(v uint64) { f.buf = binary.AppendUvarint(f.buf, v) }

func (f *frameWriter) word(v uint64) { f.buf = binary.LittleEndian.AppendUint64(f.buf, v) }

func (f *frameWriter) string(s string) {
	f.uint(uint64(len(s)))
	f.buf = append(f.buf, s...)
}

func (f *frameWriter) flush() error {
	_, err := f.w.Write(f.buf)
	f.buf = f.buf[:0]
	return err
}

// frameReader reads frames and, from the frame at hand, its records. The first
// fault is kept; what is read after it is zero.
type frameReader struct {
	r      io.Reader
	offset int64 // of the frame at hand
	next   int64
	buf    []byte // of the frame, with its head
	rest   []byte // not read yet
	err    error
}

func (f *frameReader) fail(reason string, err error) error {
	if f.err == nil {
		f.err = &SnapshotError{f.offset, reason, err}
	}
	return f.err
}

// fill reads n bytes more into buf. Memory is taken as the bytes come: a length
// that lies costs nothing.
func (f *frameReader) fill(n int) bool {
	for n > 0 {
		step := min(n, 1<<16)
		at := len(f.buf)
		f.buf = append(f.buf, make([]byte, step)...)
		got, err := io.ReadFull(f.r, f.buf[at:])
		f.next += int64(got)
		if err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				f.fail("it is cut off", io.ErrUnexpectedEOF)
			} else {
				f.fail("cannot be read", err)
			}
			return false
		}
		n -= step
	}
	return true
}

func (f *frameReader) checked() bool {
	n := len(f.buf) - 4
	return binary.LittleEndian.Uint32(f.buf[n:]) == crc32.Checksum(f.buf[:n], castagnoli)
}

func (f *frameReader) header() (seed uint64, err error) {
	if !f.fill(headerSize) {
		return 0, f.err
	}
	b := f.buf[len(snapshotMagic):]
	switch {
	case string(f.buf[:len(snapshotMagic)]) != snapshotMagic:
		return 0, f.fail("this is no index snapshot", nil)
	case binary.LittleEndian.Uint16(b) != snapshotVersion:
		return 0, f.fail(fmt.Sprintf("version %d, this program reads %d", binary.LittleEndian.Uint16(b), snapshotVersion), nil)
	case !f.checked():
		return 0, f.fail("the header is damaged", nil)
	}
	return binary.LittleEndian.Uint64(b[4:]), nil
}

// frame reads the next frame.
func (f *frameReader) frame() (frameKind, error) {
	if f.err != nil {
		return 0, f.err
	}
	f.offset, f.buf, f.rest = f.next, f.buf[:0], nil
	if !f.fill(frameHead) {
		return 0, f.err
	}
	n := binary.LittleEndian.Uint32(f.buf[1:])
	if n > frameLimit {
		return 0, f.fail(fmt.Sprintf("a frame of %d bytes", n), nil)
	}
	if !f.fill(int(n) + 4) {
		return 0, f.err
	}
	if !f.checked() {
		return 0, f.fail("the frame is damaged", nil)
	}
	f.rest = f.buf[frameHead : frameHead+n]
	return frameKind(f.buf[0]), nil
}

func (f *frameReader) more() bool { return f.err == nil && len(f.rest) > 0 }

// uint reads a number of at most limit.
func (f *frameReader) uint(limit uint64) uint64 {
	v, n := binary.Uvarint(f.rest)
	if n <= 0 || v > limit {
		f.fail("a number that cannot be", nil)
		f.rest = nil
		return 0
	}
	f.rest = f.rest[n:]
	return v
}

func (f *frameReader) word() uint64 {
	if len(f.rest) < 8 {
		f.fail("a record that ends early", nil)
		f.rest = nil
		return 0
	}
	v := binary.LittleEndian.Uint64(f.rest)
	f.rest = f.rest[8:]
	return v
}

func (f *frameReader) string(limit uint64) string {
	n := f.uint(limit)
	if n > uint64(len(f.rest)) {
		f.fail("a record that ends early", nil)
		f.rest = nil
		return ""
	}
	s := string(f.rest[:n])
	f.rest = f.rest[n:]
	return s
}
