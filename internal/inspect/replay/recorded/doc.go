// Package recorded reads what a serve recorded of its decisions back: as a workload,
// as the fleet it was decided for, as what was observed, and as decisions that other
// weights can be asked about.
package recorded
