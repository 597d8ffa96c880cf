// Package workload makes the requests of a replay: from traces as their publishers
// write them, or from generators with a seed.
package workload
