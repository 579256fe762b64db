// Command weir contracts tensors in .npy files, shows the devices that Weir
// sees, checks itself against an exact formula and measures itself.
//
// Each command is a file of this package, over what they share: app.go runs
// one and answers the exit status, session.go starts the runtime, progress.go
// draws the bar. All arithmetic is in the packages below.
package main

import (
	"os"
	"time"

	"golang.org/x/term"
)

func main() { os.Exit(fromProcess().run(os.Args[1:])) }

// fromProcess is an app that writes where the process does.
func fromProcess() *app {
	return &app{
		stdout: os.Stdout, stderr: os.Stderr,
		terminal: term.IsTerminal(int(os.Stderr.Fd())), patience: 300 * time.Millisecond,
	}
}
