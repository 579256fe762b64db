package native

import (
	"bytes"
	"os"
	goruntime "runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// TestAJobIsWaitedForWithoutThePoller: as when epoll has no room for the descriptor.
func TestAJobIsWaitedForWithoutThePoller(t *testing.T) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	s := &signal{read: os.NewFile(uintptr(fd), "eventfd"), fd: fd} // which blocks, and so is not in the poller
	defer s.close()
	if err := unix.SetNonblock(fd, true); err != nil {
		t.Fatal(err)
	}
	if _, err := s.read.Read(s.bytes[:]); err == nil {
		t.Fatal("it could be read; expected nothing there")
	}
	returned := make(chan struct{})
	go func() {
		s.wait()
		close(returned)
	}()
	for stacks := make([]byte, 1<<20); !bytes.Contains(stacks[:goruntime.Stack(stacks, true)], []byte(".notYet(")); {
		goruntime.Gosched()
	}
	if _, err := unix.Write(fd, []byte{1, 0, 0, 0, 0, 0, 0, 0}); err != nil {
		t.Fatal(err)
	}
	<-returned
	if s.notYet(os.ErrClosed) {
		t.Error("another error is taken for nothing to read")
	}
}
