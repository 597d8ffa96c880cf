package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/muesli/cancelreader"
)

// errInterrupted is what a read says that a signal ended.
var errInterrupted = errors.New("interrupted")

// typing is for who expected output and is waited for.
const typing = "eppctl: reading from the terminal; end with Ctrl-D on a line of its own, or give a file: < FILE"

// input is a stdin whose reading ends with a context. A read of a terminal or a
// pipe waits until somebody writes, and a signal that was asked for ends no read.
type input struct {
	ctx    context.Context
	file   *os.File
	note   io.Writer                 // is told before the first read that a person has to type; nil = a file or a pipe
	reader cancelreader.CancelReader // from the first read on, as long as the process lives
}

func (in *input) Read(p []byte) (int, error) {
	if in.note != nil {
		fmt.Fprintln(in.note, typing)
		in.note = nil
	}
	if in.reader == nil {
		r, err := cancelreader.NewReader(in.file)
		if err != nil {
			return in.file.Read(p)
		}
		in.reader = r
		context.AfterFunc(in.ctx, func() { r.Cancel() })
	}
	n, err := in.reader.Read(p)
	if errors.Is(err, cancelreader.ErrCanceled) {
		err = errInterrupted
	}
	return n, err
}
