package native

import (
	"fmt"
	"os"
)

// signal is how a session's worker says that a job returned: eight bytes that it
// writes to fd. It belongs to one waiting goroutine at a time.
type signal struct {
	read   *os.File
	write  *os.File // the other end, if it is a pipe
	fd     int
	polled polled
	bytes  [8]byte
}

// wait waits for the worker. Other goroutines run meanwhile.
func (s *signal) wait() {
	s.linger()
	for n := 0; n < len(s.bytes); {
		m, err := s.read.Read(s.bytes[n:])
		if err != nil && s.notYet(err) {
			continue
		}
		if err != nil { // then nobody knows when the job's memory may be freed
			panic(fmt.Sprintf("native: waiting for a job: %v", err))
		}
		n += m
	}
}

func (s *signal) close() error {
	if s == nil {
		return nil
	}
	if s.write != nil {
		_ = s.write.Close() // nothing is buffered
	}
	return s.read.Close()
}
