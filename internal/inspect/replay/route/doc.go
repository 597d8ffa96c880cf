// Package route holds the policies of a replay: the product itself, driven through
// its own index, ledger and decision, and the rules that others publish, written
// down from their descriptions. It keeps no time: now is an argument, in
// nanoseconds.
package route
