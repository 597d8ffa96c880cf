package serve

import (
	"fmt"
	"log/slog"
	"time"
)

// Options are what a command line says beside the config file.
type Options struct {
	// RequestBodyMode forces a body mode on proxies that do not state theirs:
	// auto (default), none, streamed, buffered, buffered-partial, full-duplex.
	RequestBodyMode string
	// EndSignal says how the end of a request is learned: auto (default), stream
	// or metrics. See endsignal.go.
	EndSignal string
	// EndTTL bounds how long a request whose end nobody told is counted.
	// 0 = 5 minutes.
	EndTTL time.Duration
	// Fallbacks is the number of further endpoints behind the picked one. Only
	// proxies with override_host take a list.
	Fallbacks int
	// EmitScores adds every candidate's score to the dynamic metadata.
	EmitScores bool
	// Version is what /v1/version reports.
	Version Version
	// Log is where serve writes; nil = nothing.
	Log *slog.Logger
	// Level, when not nil, follows the configuration's log_level: Log's handler heeds it.
	Level *slog.LevelVar
	// Reload asks for a look at the config file at once (SIGHUP); may be nil.
	Reload <-chan struct{}
	// Ready, when not nil, is called once with the addresses listened at.
	Ready func(Addresses)
}

// Addresses are the sockets a running server listens at; empty = off.
type Addresses struct{ ExtProc, Health, Admin, Metrics string }

// Version names a build.
type Version struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Date     string `json:"date"`
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
	Modified bool   `json:"modified"`
}

// MaxFallbacks bounds the list: retries beyond a handful do not help a client.
const MaxFallbacks = 8

// check validates the options and fills the defaults.
func (o Options) check() (Options, error) {
	if _, err := forcedMode(o.RequestBodyMode); err != nil {
		return o, err
	}
	if _, err := parseEndSignal(o.EndSignal); err != nil {
		return o, err
	}
	if o.Fallbacks < 0 || o.Fallbacks > MaxFallbacks {
		return o, fmt.Errorf("fallbacks: found %d; expected 0 to %d", o.Fallbacks, MaxFallbacks)
	}
	if o.EndTTL <= 0 {
		o.EndTTL = 5 * time.Minute
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o, nil
}

// follow sets the level of the log.
func (o *Options) follow(level string) {
	var l slog.Level
	if o.Level != nil && l.UnmarshalText([]byte(level)) == nil { // the configuration was checked
		o.Level.Set(l)
	}
}
