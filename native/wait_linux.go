package native

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// newSignal makes an eventfd.
func newSignal() (*signal, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("eventfd", err)
	}
	return &signal{read: os.NewFile(uintptr(fd), "eventfd"), fd: fd}, nil
}

// soon is how long a thread waits for a job before it leaves that to the poller: to
// be woken by the kernel takes 5 µs, through the poller 30.
const soon = 50_000 // ns

// linger waits a little.
func (s *signal) linger() {
	s.polled[0] = unix.PollFd{Fd: int32(s.fd), Events: unix.POLLIN}
	_, _ = unix.Ppoll(s.polled[:], &unix.Timespec{Nsec: soon}, nil) // whatever it answers, a read follows
}

// notYet waits on, on this thread, where err says that there is nothing to read: the
// system had no room for the descriptor in the poller.
func (s *signal) notYet(err error) bool {
	if !errors.Is(err, unix.EAGAIN) {
		return false
	}
	_, _ = unix.Ppoll(s.polled[:], nil, nil)
	return true
}

type polled [1]unix.PollFd
