//go:build unix

package bench

import (
	"os/exec"
	"syscall"
)

// ownGroup has the command start in a process group of its own, which an
// interrupt at the terminal does not reach.
func ownGroup(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killGroup kills the command, which has not been waited for, and all that it
// started in its group.
func killGroup(c *exec.Cmd) { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
