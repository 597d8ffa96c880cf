// Package replay is the command of that name: a trace or a generated workload
// on a simulated fleet, under the product and under other policies, at one load or
// at several.
package replay
