package feed

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"
)

const (
	// answerBytes caps what an engine tells of itself. SGLang's /server_info
	// measures some 20 KB with all of its settings.
	answerBytes   = 1 << 20
	answerTimeout = 2 * time.Second
	// HeaderBytes caps the headers of an answer, of which net/http would take 10 MiB.
	// Envoy's own bound is 60 KiB.
	HeaderBytes = 64 << 10
	// mostSaid is how much of an error is told, in characters.
	mostSaid = 200
)

// httpError is an answer with another status than 200.
type httpError struct {
	code int
	text string // beginning of the body, or where it sends on, in one line
}

func (e *httpError) Error() string {
	if e.text == "" {
		return fmt.Sprintf("HTTP %d", e.code)
	}
	return fmt.Sprintf("HTTP %d: %s", e.code, e.text)
}

// answered says whether err still means that something speaks HTTP there.
func answered(err error) bool {
	var he *httpError
	return err == nil || errors.As(err, &he) || errors.Is(err, errNotJSON)
}

var errNotJSON = errors.New("answer is not the JSON expected")

// outcome is what came of one question to an engine. Only told counts as
// knowledge: a sidecar or an engine that is still loading fails questions which
// it answers a minute later.
type outcome uint8

const (
	unasked    outcome = iota
	failed             // no answer, or one that says nothing: it may be told another time
	notOffered         // the engine has no such thing
	given              // told
)

// outcomeOf reads the outcome off askJSON's error. 4xx means that the question
// is not taken, save for three that mean "not now".
func outcomeOf(err error) outcome {
	var he *httpError
	switch {
	case err == nil:
		return given
	case errors.Is(err, errNotJSON):
		return notOffered
	case !errors.As(err, &he):
		return failed
	}
	switch he.code {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return failed
	case http.StatusNotImplemented:
		return notOffered
	}
	if he.code >= 500 || he.code < 400 { // a redirect that is not followed says nothing of this engine
		return failed
	}
	return notOffered
}

// checkStatus is nil for status 200.
func checkStatus(resp *http.Response) error {
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	if to := sentOn(resp); to != "" {
		return &httpError{resp.StatusCode, to}
	}
	head, _ := io.ReadAll(io.LimitReader(resp.Body, 256))
	return &httpError{resp.StatusCode, printable(string(head), 80)}
}

// askJSON sends a request and decodes the answer; body nil makes it a GET.
func askJSON(ctx context.Context, client *http.Client, to string, body []byte, into any) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	method := http.MethodGet
	if body != nil {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(ctx, method, to, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("URL: %w", err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := send(client, req)
	if err != nil {
		return bare(err)
	}
	defer resp.Body.Close()
	if err := checkStatus(resp); err != nil {
		return err
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, answerBytes+1))
	if err != nil {
		return fmt.Errorf("answer cut after %d bytes: %w", len(text), err)
	}
	if len(text) > answerBytes {
		return fmt.Errorf("%w: larger than %d bytes", errNotJSON, answerBytes)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%w: %w", errNotJSON, err)
	}
	return nil
}

// printable makes one short line of text that came from outside.
func printable(s string, limit int) string {
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
	if r := []rune(s); len(r) > limit {
		return string(r[:limit]) + "…"
	}
	return s
}

// bare takes method and URL off a client's error: the reader knows them. What it quotes
// of the answer is cut.
func bare(err error) error {
	if ue, ok := errors.AsType[*url.Error](err); ok {
		err = ue.Err
	}
	return cutError{err}
}

// cutError is an error that may quote what came, as net/http does with lines that it
// cannot read.
type cutError struct{ error }

func (e cutError) Error() string { return printable(e.error.Error(), mostSaid) }
func (e cutError) Unwrap() error { return e.error }

// wordless takes off a client's error whatever it may quote of the answer.
func wordless(err error) error {
	if ue, ok := errors.AsType[*url.Error](err); ok {
		err = ue.Err
	}
	_, network := errors.AsType[net.Error](err)
	_, certificate := errors.AsType[*tls.CertificateVerificationError](err)
	_, record := errors.AsType[tls.RecordHeaderError](err)
	switch {
	case network, certificate, record, errors.Is(err, context.Canceled), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, http.ErrSchemeMismatch):
		return err
	}
	return ErrNotHTTP
}
