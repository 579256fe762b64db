package buffer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/fault"
	"github.com/weirgo/weir/internal/driver/host"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/stream"
)

// program is a small use of everything: memory of each kind, accesses on two
// streams, copies, a partition, frees, a trim. It goes on after an error as a
// caller would who cleans up, and answers all errors.
func program(rt *runtime.Runtime) (err error) {
	const bytes = 2 << 20
	note := func(e error) { err = errors.Join(err, e) }
	defer func() { note(rt.Close()) }()

	r := must(runtime.Enrolled())[0]
	m, e := buffer.Of(r)
	if e != nil {
		return e
	}
	var mine []*buffer.Buffer
	allocate := func(make func(int64) (*buffer.Buffer, error), bytes int64) *buffer.Buffer {
		b, e := make(bytes)
		if e != nil {
			note(e)
			return nil
		}
		mine = append(mine, b)
		return b
	}
	small, large, pinned := allocate(m.New, 64), allocate(m.New, bytes), allocate(m.NewPinned, bytes)
	var streams []stream.Stream
	for range 2 {
		s, e := r.Streams().Acquire(context.Background())
		if e != nil {
			note(e)
			continue
		}
		streams = append(streams, s)
	}
	defer func() {
		for _, b := range mine {
			note(b.Free())
		}
		note(m.Trim())
		for _, s := range streams {
			note(s.Release())
		}
	}()
	if err != nil {
		return err
	}

	// 64 bytes go into small, to the end of large, and out through pinned.
	in := slices.Repeat([]byte{0xa5}, 64)
	access := func(s stream.Stream, do func(acc *buffer.Access) func(driver.Stream) error) bool {
		acc := buffer.Begin(s)
		work := do(&acc)
		if acc.Err() == nil {
			d, e := s.Submit()
			if e == nil {
				e = work(d)
			}
			note(e)
		}
		note(acc.End())
		return err == nil
	}
	ok := access(streams[0], func(acc *buffer.Access) func(driver.Stream) error {
		p := acc.Write(small)
		return func(d driver.Stream) error { return d.CopyIn(p, in) }
	})
	parts := []*buffer.Buffer{large}
	if ok {
		cut, e := large.Partition(buffer.Range{Bytes: bytes - 64}, buffer.Range{Offset: bytes - 64, Bytes: 64})
		note(e)
		if e == nil {
			parts = cut
			mine = append(mine, cut...)
		}
	}
	ok = ok && access(streams[1], func(acc *buffer.Access) func(driver.Stream) error {
		p, q := acc.Read(small), acc.Write(parts[1])
		return func(d driver.Stream) error { return d.Copy(q, p, 64) }
	})
	ok = ok && access(streams[0], func(acc *buffer.Access) func(driver.Stream) error {
		p, q := acc.Read(parts[1]), acc.Write(pinned)
		return func(d driver.Stream) error { return d.Copy(q, p, 64) }
	})
	if ok {
		note(pinned.HostRead(context.Background(), func(x []byte) error {
			if !slices.Equal(x[:64], in) {
				return errWrongValue
			}
			return nil
		}))
	}
	return err
}

var errWrongValue = errors.New("no call failed, and the value is wrong")

// run runs the program with a plan and answers its device and its error.
func run(t *testing.T, plan *fault.Plan, plain bool) (driver.Device, error) {
	t.Helper()
	family := host.New(host.Options{HandOver: true, MemoryBytes: 64 << 20})
	inner := must(family.Open(0))
	if plain {
		family = plainFamily{family}
	}
	rt, err := runtime.StartFamilies([]driver.Family{fault.New(family, plan)}, runtime.Options{ResourceOptions: runtime.ResourceOptions{Streams: 2}})
	if err == nil {
		soon(t, func() { err = program(rt) })
	}
	return inner, err
}

func TestOneFailedCallAnywhereIsAnsweredAndLeaksNothing(t *testing.T) {
	for _, plain := range []bool{false, true} {
		t.Run(fmt.Sprintf("plain %t", plain), func(t *testing.T) {
			for n := 1; ; n++ {
				plan := &fault.Plan{}
				plan.FailNth(fault.Any, n, nil)
				inner, err := run(t, plan, plain)
				total := plan.Counts()[fault.Any]
				if errors.Is(err, errWrongValue) {
					t.Errorf("call %d: %v", n, err)
				}
				if n <= total && err != nil && !errors.Is(err, fault.ErrInjected) || errors.Is(err, weir.ErrLeak) {
					t.Errorf("call %d: %v; expected the failure alone", n, err)
				}
				if free, all := must2(inner.Memory()); free != all {
					t.Errorf("call %d: %d bytes are not back, after %v", n, all-free, err)
				}
				if n > total {
					if err != nil || n < 30 {
						t.Errorf("with no failure, after %d calls: %v", n-1, err)
					}
					return
				}
			}
		})
	}
}

func TestACallThatAlwaysFailsIsAnsweredAndHangsNothing(t *testing.T) {
	for _, call := range fault.Calls() {
		t.Run(string(call), func(t *testing.T) {
			plan := &fault.Plan{}
			plan.FailFrom(call, 1, nil)
			_, err := run(t, plan, false)
			if errors.Is(err, errWrongValue) {
				t.Error(err)
			}
			if plan.Counts()[call] > 0 && err != nil && !errors.Is(err, fault.ErrInjected) {
				t.Errorf("got %v; expected the failure", err)
			}
		})
	}
}

func TestADeathAnywhereIsAnsweredAndHangsNothing(t *testing.T) {
	for n := 1; ; n++ {
		plan := &fault.Plan{}
		plan.KillNth(fault.Any, n, errCause)
		_, err := run(t, plan, false)
		if n > plan.Counts()[fault.Any] {
			if err != nil || n < 30 {
				t.Errorf("with no death, after %d calls: %v", n-1, err)
			}
			return
		}
		if errors.Is(err, errWrongValue) || err != nil && !errors.Is(err, weir.ErrDeviceLost) {
			t.Errorf("call %d: %v; expected the lost device", n, err)
		}
	}
}
