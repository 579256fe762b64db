package stream_test

import (
	"context"
	"errors"
	"testing"

	"github.com/weirgo/weir/internal/driver/host"
	"github.com/weirgo/weir/stream"
)

// TestASteadyOperationAllocatesNothing measures what this package adds to the
// driver's calls: on an idle host stream they allocate nothing themselves.
func TestASteadyOperationAllocatesNothing(t *testing.T) {
	d, err := host.New(host.Options{}).Open(0)
	if err != nil {
		t.Fatal(err)
	}
	p, err := stream.NewPool(d, stream.Options{Count: 2})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	other, err := p.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	acquire := func() stream.Stream {
		s, err := p.Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	held := acquire()
	for name, operation := range map[string]func() error{
		"a record": func() error {
			_, err := held.Record()
			return err
		},
		"a submission and its tail": func() error {
			_, err1 := held.Submit()
			c, err2 := held.Tail()
			_, err3 := c.Done()
			return errors.Join(err1, err2, err3)
		},
		"a wait": func() error {
			c, err := held.Record()
			return errors.Join(err, other.Wait(c), c.Wait(ctx))
		},
		"a further handle": func() error {
			s, err := held.Retain()
			return errors.Join(err, s.Release())
		},
	} {
		if n := testing.AllocsPerRun(200, func() {
			if err := operation(); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations; expected none", name, n)
		}
	}
	if err := held.Release(); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(200, func() {
		s := acquire()
		if _, err := s.Submit(); err != nil {
			t.Fatal(err)
		}
		if err := s.Release(); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("a whole lease: %v allocations; expected none", n)
	}
	if err := errors.Join(other.Release(), p.Close()); err != nil {
		t.Error(err)
	}
}
