package jinja2

import (
	"fmt"
	"strings"
	"time"
)

// strftimeNow is datetime.now().strftime(format), for the moment and zone the
// render was given.
func strftimeNow(r *render, args []Value, kwargs map[string]Value) (Value, error) {
	if len(args) != 1 || len(kwargs) > 0 {
		return undefined, refuse("calls strftime_now with wrong arguments")
	}
	format, err := want("strftime", args[0])
	if err != nil {
		return undefined, err
	}
	r.dated = true
	if r.now.IsZero() {
		return undefined, &Unsupported{"the date of an engine whose clock is not known"}
	}
	s, err := strftime(r.now, format)
	if err != nil {
		return undefined, err
	}
	return r.made(s)
}

// layouts are the conversions that Go's time package has, in the C locale.
var layouts = map[byte]string{
	'Y': "2006", 'm': "01", 'd': "02", 'H': "15", 'M': "04", 'S': "05", 'y': "06", 'B': "January", 'b': "Jan", 'h': "Jan",
	'A': "Monday", 'a': "Mon", 'p': "PM", 'I': "03", 'j': "002", 'e': "_2", 'F': "2006-01-02", 'T': "15:04:05", 'R': "15:04",
	'D': "01/02/06", 'x': "01/02/06", 'X': "15:04:05", 'c': "Mon Jan _2 15:04:05 2006", 'r': "03:04:05 PM",
}

// unpadded are the conversions of glibc's %- flag.
var unpadded = map[byte]string{'d': "2", 'm': "1", 'I': "3", 'M': "4", 'S': "5", 'e': "2"}

// strftime formats t as Python's datetime does for a time without a zone, on
// glibc in the C locale.
func strftime(t time.Time, format string) (string, error) {
	var b strings.Builder
	for {
		at := strings.IndexByte(format, '%')
		if at < 0 {
			b.WriteString(format)
			return b.String(), nil
		}
		b.WriteString(format[:at])
		format = format[at+1:]
		if format == "" {
			return "", &Unsupported{"a date format that ends in %"}
		}
		verb, plain := format[0], layouts
		if verb == '-' && len(format) > 1 {
			verb, plain = format[1], unpadded
			format = format[1:]
			if verb == 'H' {
				fmt.Fprint(&b, t.Hour())
				format = format[1:]
				continue
			}
		}
		format = format[1:]
		if layout, ok := plain[verb]; ok {
			b.WriteString(t.Format(layout))
			continue
		}
		switch verb {
		case '%':
			b.WriteByte('%')
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case 'f':
			fmt.Fprintf(&b, "%06d", t.Nanosecond()/1000)
		case 'u':
			fmt.Fprint(&b, (int(t.Weekday())+6)%7+1)
		case 'w':
			fmt.Fprint(&b, int(t.Weekday()))
		case 'U':
			fmt.Fprintf(&b, "%02d", (t.YearDay()+6-int(t.Weekday()))/7)
		case 'W':
			fmt.Fprintf(&b, "%02d", (t.YearDay()+6-(int(t.Weekday())+6)%7)/7)
		case 'V', 'G':
			year, week := t.ISOWeek()
			if verb == 'G' {
				fmt.Fprintf(&b, "%04d", year)
			} else {
				fmt.Fprintf(&b, "%02d", week)
			}
		case 'Z', 'z': // a time without a zone has none to print
		default:
			return "", &Unsupported{"the date format %" + string(verb)}
		}
	}
}
