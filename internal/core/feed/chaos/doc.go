// Package chaos tests the feed and the index together, from outside, beside real
// libzmq publishers that are killed, stopped, cut off and made to lose messages.
// It has no code of its own to import.
package chaos
