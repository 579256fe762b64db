//go:build !linux

package native

import "os"

// newSignal makes a pipe.
func newSignal() (*signal, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	return &signal{read: r, write: w, fd: int(w.Fd())}, nil
}

func (s *signal) linger() {}

func (s *signal) notYet(error) bool { return false }

type polled struct{}
