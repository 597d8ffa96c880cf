package main

import "strconv"

// replayFlag is a switch that may say from which batch on.
type replayFlag struct {
	on   bool
	from uint64
}

func (v *replayFlag) String() string {
	if v.from > 0 {
		return strconv.FormatUint(v.from, 10)
	}
	return strconv.FormatBool(v.on)
}

func (v *replayFlag) Type() string { return "seq" }

func (v *replayFlag) Set(s string) (err error) {
	*v = replayFlag{}
	if s == "true" || s == "false" {
		v.on = s == "true"
		return nil
	}
	v.from, err = strconv.ParseUint(s, 10, 64)
	v.on = err == nil
	return err
}
