package chat

import "regexp"

// Release is a release of an engine, as far as its prompts differ. The zero Release is not
// known.
type Release struct{ Major, Minor int }

// releasePattern reads what an engine tells of itself: "0.32.0", "0.33.1.dev12+gabc".
var releasePattern = regexp.MustCompile(`^v?([0-9]{1,4})\.([0-9]{1,4})(?:\.([0-9]{1,4}))?((?:[^0-9].*)?)$`)

// preRelease is what stands behind the number of one that is not out yet.
var preRelease = regexp.MustCompile(`^\.?(?:a|b|rc|dev|alpha|beta)`)

// ParseRelease reads an engine's release. One that leads up to a new minor number may be
// like the one before or like that: it is not known.
func ParseRelease(s string) Release {
	m := releasePattern.FindStringSubmatch(s)
	if m == nil || (m[3] == "" || m[3] == "0") && preRelease.MatchString(m[4]) {
		return Release{}
	}
	return Release{number(m[1]), number(m[2])}
}

// number is that of a few digits.
func number(digits string) (n int) {
	for _, c := range digits {
		n = 10*n + int(c-'0')
	}
	return n
}

// Before reports whether r is before a release.
func (r Release) Before(major, minor int) bool {
	return r.Major < major || r.Major == major && r.Minor < minor
}
