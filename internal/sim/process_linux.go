package sim

import (
	"os/exec"
	"syscall"
)

// endWithParent makes the kernel end the child when its parent dies, however it
// dies: a killed test leaves no Envoy behind. The child leads a group, for killAll.
func endWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// killAll ends the child and what it has started: an engine's workers would keep
// its ports.
func killAll(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
