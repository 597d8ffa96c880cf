package workload

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// reader reads one row; it keeps what rows need of each other.
type reader interface {
	// row adds a request; why says what is wrong with the line.
	row(line []byte) (why string)
	done() *Workload
}

// formats are the traces that are understood. The first line tells which.
var formats = []struct {
	Name string
	is   func(first []byte) bool
	open func() reader
	head bool // the first line is a heading
}{
	{"azure", func(b []byte) bool { return bytes.HasPrefix(b, []byte("TIMESTAMP,")) }, newAzure, true},
	{"bailian", func(b []byte) bool { return bytes.Contains(b, []byte(`"chat_id"`)) }, newBailian, false},
	{"mooncake", func(b []byte) bool { return bytes.Contains(b, []byte(`"hash_ids"`)) }, newMooncake, false},
}

// Formats lists the names.
func Formats() []string {
	var names []string
	for _, f := range formats {
		names = append(names, f.Name)
	}
	slices.Sort(names)
	return names
}

// Read reads a trace, gzip-compressed or not, in whichever format its first line
// shows. name stands in errors. At most limit requests are read; 0 = all.
func Read(name string, r io.Reader, limit int) (*Workload, error) {
	in := bufio.NewReaderSize(r, 1<<16)
	if magic, _ := in.Peek(2); len(magic) == 2 && magic[0] == 0x1f && magic[1] == 0x8b {
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, fmt.Errorf("%s: gzip: %w", name, err)
		}
		defer z.Close()
		in = bufio.NewReaderSize(z, 1<<16)
	}
	w, err := read(name, in, limit)
	if err != nil {
		return nil, err
	}
	w.Name = name
	return w, nil
}

func read(name string, in *bufio.Reader, limit int) (*Workload, error) {
	scan := bufio.NewScanner(in)
	scan.Buffer(make([]byte, 0, 1<<16), maxLine)
	var rd reader
	line, rows := 0, 0
	for scan.Scan() {
		line++
		b := bytes.TrimSpace(scan.Bytes())
		if rd == nil {
			b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
		}
		if len(b) == 0 {
			continue
		}
		if rd == nil {
			var heading bool
			if rd, heading = detect(b); rd == nil {
				return nil, &LineError{name, line, "no known trace begins like this; known are " + strings.Join(Formats(), ", ")}
			}
			if heading {
				continue
			}
		}
		if rows == MaxRequests {
			return nil, &LineError{name, line, fmt.Sprintf("more than %d requests; cut the file, or use --requests", MaxRequests)}
		}
		if why := rd.row(b); why != "" {
			return nil, &LineError{name, line, why}
		}
		if rows++; rows == limit {
			break
		}
	}
	switch err := scan.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, &LineError{name, line + 1, fmt.Sprintf("longer than %d bytes", maxLine)}
	case err != nil:
		return nil, fmt.Errorf("%s: line %d: %w", name, line+1, err)
	case rows == 0:
		return nil, fmt.Errorf("%s: no requests in it", name)
	}
	return rd.done(), nil
}

func detect(first []byte) (rd reader, heading bool) {
	for _, f := range formats {
		if f.is(first) {
			return f.open(), f.head
		}
	}
	return nil, false
}

// tokens checks a length.
func tokens(what string, n int) string {
	switch {
	case n < 0:
		return fmt.Sprintf("%s is %d, below 0", what, n)
	case n > MaxTokens:
		return fmt.Sprintf("%s is %d, above %d", what, n, MaxTokens)
	}
	return ""
}
