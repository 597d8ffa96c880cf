package tap

import (
	"fmt"
	"strings"
	"time"
)

// Moment is a point in a recording: a time, a time of day, or so long after its
// begin or before its end. The zero value is none.
type Moment struct {
	at     time.Time
	clock  bool // at is a time of day
	offset time.Duration
	sign   byte // '+' from the begin, '-' from the end, 0 = no offset
}

// ParseMoment reads 2026-11-29T11:42:07Z, 11:42 or 11:42:07.5 (local time, on the
// recording's day), +5m (after its begin) or -5m (before its end).
func ParseMoment(text string) (Moment, error) {
	if text != "" && strings.ContainsRune("+-", rune(text[0])) {
		if d, err := time.ParseDuration(text[1:]); err == nil && d >= 0 {
			return Moment{sign: text[0], offset: d}, nil
		}
	}
	if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return Moment{at: at}, nil
	}
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04", time.DateTime, "2006-01-02 15:04"} {
		if at, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return Moment{at: at}, nil
		}
	}
	for _, layout := range []string{"15:04:05", "15:04"} {
		if at, err := time.Parse(layout, text); err == nil {
			return Moment{at: at, clock: true}, nil
		}
	}
	return Moment{}, fmt.Errorf("no time: %q", text)
}

// Relative reports that one must know the whole recording to tell the time.
func (m Moment) Relative() bool { return m.clock || m.sign != 0 }

// in is the moment in a recording of this extent; zero for none. A time of day is
// the one on the recording's first day, or on the next where only that lies in it.
func (m Moment) in(begin, end time.Time) time.Time {
	switch {
	case m.sign == '+':
		return begin.Add(m.offset)
	case m.sign == '-':
		return end.Add(-m.offset)
	case !m.clock:
		return m.at
	}
	day := begin.Local()
	at := time.Date(day.Year(), day.Month(), day.Day(), m.at.Hour(), m.at.Minute(), m.at.Second(), m.at.Nanosecond(), time.Local)
	if next := at.AddDate(0, 0, 1); at.Before(begin) && !next.After(end) {
		return next
	}
	return at
}
