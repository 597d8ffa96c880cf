package sim

import (
	"os/exec"
	"syscall"
)

// endWithParent makes the kernel end the child when its parent dies, however it
// dies: a killed test leaves no Envoy behind.
func endWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
