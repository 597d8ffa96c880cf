//go:build race

package e2e

// buildFlags: a race build of the tests tests a race build of the binary.
var buildFlags = []string{"-race"}
