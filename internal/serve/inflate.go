package serve

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// Why a compressed body is not read. The request is routed by load, and goes on as
// it came.
var (
	errCoding = errors.New("a content-encoding other than gzip and zstd")
	errBomb   = errors.New("a body that grows beyond limits.request_bytes")
)

// coding is how a body is compressed: "" for not at all.
func coding(encoding string) string {
	switch e := strings.ToLower(strings.TrimSpace(encoding)); e {
	case "identity":
		return ""
	case "x-gzip": // RFC 9110, 8.4.1.3
		return "gzip"
	default:
		return e
	}
}

// maxWindow is the most history that a zstd body may refer to: what RFC 8878,
// 3.1.1.1.2, advises decoders to support. More is more memory for nothing.
const maxWindow = 8 << 20

// inflate returns the text of a compressed body, at most limit bytes. It reads no
// further than that, so that a bomb costs what the largest body does. An error is
// errCoding, errBomb, or says that the bytes are not what they claim to be.
func inflate(body []byte, encoding string, limit int) ([]byte, error) {
	from, err := inflater(body, coding(encoding))
	if err != nil {
		return nil, err
	}
	defer from.Close()
	var text bytes.Buffer
	text.Grow(min(4*len(body), limit) + bytes.MinRead) // JSON shrinks to a quarter or less
	if _, err := text.ReadFrom(io.LimitReader(from, int64(limit)+1)); err != nil {
		return nil, err
	}
	if text.Len() > limit {
		return nil, errBomb
	}
	return text.Bytes(), nil
}

func inflater(body []byte, coding string) (io.ReadCloser, error) {
	switch coding {
	case "gzip":
		return gzip.NewReader(bytes.NewReader(body))
	case "zstd":
		d, err := zstd.NewReader(bytes.NewReader(body), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, err
		}
		return d.IOReadCloser(), nil
	}
	return nil, errCoding
}
