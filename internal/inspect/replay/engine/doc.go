// Package engine models one inference engine in virtual time: continuous batching with
// chunked prefill, a KV pool of shared blocks with reference counts and an LRU,
// preemption, a host tier, LoRA slots. Nothing here waits, computes or reads a
// clock: a step is planned, has a length, and ends.
//
// Its constants are fitted to one published figure, so ratios between policies
// mean something and seconds alone do not.
package engine
