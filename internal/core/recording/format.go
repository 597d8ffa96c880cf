package recording

import (
	"errors"
	"fmt"
	"hash/crc32"
)

// The layout of a file, numbers big-endian:
//
//	magic     8 bytes; its CR LF shows damage by text mode
//	version   u16, flags u16 (none is defined; a set one is refused)
//	header    u32 length, JSON
//	record*   u32 length of type and body; u8 type; body; u32 CRC-32C of type and body
//
//	frame, replay  i64 time, u16 pod, u16 parts, per part u32 length and bytes
//	pod            u16 number, JSON; before the first record of that pod
//	notice         i64 time, u16 pod, JSON
//	page           i64 time, u16 pod, i32 HTTP status, bytes
//	card, fleet,
//	decision,
//	outcome        i64 time, JSON
//	spec, state    i64 time, u16 pod, JSON
//	account        JSON
//
// Times are ns since 1970. Pod number noPod means none.
const (
	Magic   = "\x89EPTAP\r\n"
	version = 1

	prefixBytes = len(Magic) + 4
	noPod       = 0xffff
	maxPods     = noPod

	// MaxRecord bounds a record: four times the largest message that the feed
	// takes from a publisher.
	MaxRecord = 64 << 20
	maxHeader = 1 << 20
	maxParts  = 1<<16 - 1
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// FormatVersion is the version of the files that Writer writes.
const FormatVersion = version

// Errors of a Reader. ErrCut is a recording that ends without its account: what
// was read of it is good.
var (
	ErrNoRecording = errors.New("not a recording")
	ErrVersion     = errors.New("recording of another version")
	ErrCut         = errors.New("recording ends early")
	ErrDamaged     = errors.New("recording is damaged")
)

// FormatError is one of the errors above and where it is.
type FormatError struct {
	Err    error
	Offset int64 // of the first byte of the record that is not whole, or not right
	Detail string
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("%v at offset %d: %s", e.Err, e.Offset, e.Detail)
}

func (e *FormatError) Unwrap() error { return e.Err }
