// Package fleet plays a workload on simulated engines under one policy, in virtual
// time: one queue of events in order of time, and no clock, goroutine or map order
// that a result could depend on. Equal configurations give equal results, to the bit.
package fleet
