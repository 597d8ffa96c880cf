// Package release holds what is shipped to its word: the container image and the
// packages are built, looked into and run. It has no code of its own to import.
package release
