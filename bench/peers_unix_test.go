//go:build unix

package bench

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

// The child and its own child hold connections, which end with them.
func TestNothingOfAPeerOutlivesARunThatIsCancelled(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	p := fakePeers(t, "hangs "+listener.Addr().String())
	ctx, cancel := context.WithCancelCause(context.Background())
	stopped := errors.New("stopped")
	ended := make(chan error)
	go func() {
		_, err := p.measure(ctx, aDAG(), effortOf(true), Nanoseconds)
		ended <- err
	}()
	var held []net.Conn
	for range 2 {
		c, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		held = append(held, c)
	}
	cancel(stopped)
	if err := <-ended; !errors.Is(err, stopped) {
		t.Errorf("measuring answered %v; expected the cancellation", err)
	}
	for _, c := range held {
		if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		// A process that was killed ends its connection, or resets it.
		if n, err := io.ReadFull(c, make([]byte, 1)); n != 0 || isTimeout(err) {
			t.Errorf("a process is still there: %v", err)
		}
	}
}

func isTimeout(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout()
}
