// Package arch holds no code but the tests that keep the arrows between the
// packages pointing one way. The rules and their reasons stand in rules_test.go.
package arch
