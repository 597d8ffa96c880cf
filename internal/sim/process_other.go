//go:build !linux

package sim

import "os/exec"

// endWithParent: only Linux has it.
func endWithParent(*exec.Cmd) {}

func killAll(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
