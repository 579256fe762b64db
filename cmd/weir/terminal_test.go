//go:build unix

package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"
)

// TestControlCOnATerminalStopsTheWorkUnderItsBar waits for the progress bar and
// types Ctrl-C.
func TestControlCOnATerminalStopsTheWorkUnderItsBar(t *testing.T) {
	keyboard, terminal, err := pty.Open()
	if err != nil {
		t.Skip("no pseudo-terminal:", err)
	}
	defer keyboard.Close()
	old, err := os.ReadFile("testdata/npy/a.npy")
	if err != nil {
		t.Fatal(err)
	}
	output := filepath.Join(t.TempDir(), "out.npy")
	if err := os.WriteFile(output, old, 0o666); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("weir-stalls", "einsum", "ij,jk,kl->il", "testdata/npy/a.npy", "testdata/npy/b.npy", "testdata/npy/c.npy", "-o", output)
	cmd.Stdin, cmd.Stderr = terminal, terminal
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	terminal.Close()
	var shown bytes.Buffer
	typed := false
	for buf := make([]byte, 1024); ; {
		n, err := keyboard.Read(buf)
		shown.Write(buf[:n])
		if !typed && strings.Contains(shown.String(), "contracting") {
			typed = true
			if _, err := keyboard.Write([]byte{3}); err != nil {
				t.Fatal(err)
			}
		}
		if err != nil { // the process has closed its end
			break
		}
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 130 {
		t.Errorf("%v; expected exit status 130", err)
	}
	if got := shown.String(); !typed || !strings.HasSuffix(got, "\rweir: interrupted\r\n") {
		t.Errorf("the terminal shows %q; expected a bar, and then a message on a line of its own", got)
	}
	if now, err := os.ReadFile(output); err != nil || !bytes.Equal(now, old) {
		t.Errorf("the output has changed (%v); expected the older file", err)
	}
	if files, _ := filepath.Glob(filepath.Join(filepath.Dir(output), "*")); len(files) != 1 {
		t.Errorf("left behind: %q", files)
	}
}

func TestASecondSignalKillsAtOnce(t *testing.T) {
	err := exec.Command("weir-heeds-not", "ising", "--size", "2").Run()
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		t.Fatalf("%v; expected the process to be killed", err)
	}
	if status := exit.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != syscall.SIGINT {
		t.Errorf("%v; expected death by the signal", exit)
	}
}
