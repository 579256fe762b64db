package stream_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/host"
	"github.com/weirgo/weir/stream"
)

// inline is two host devices that do small work where it is submitted, so that
// their streams are seen to be idle, and a pool of each.
func inline(t *testing.T) (devs [2]driver.Device, pools [2]*stream.Pool) {
	t.Helper()
	family := host.New(host.Options{Devices: 2})
	for i := range devs {
		var err error
		if devs[i], err = family.Open(i); err != nil {
			t.Fatal(err)
		}
		if pools[i], err = stream.NewPool(devs[i], stream.Options{Count: 2}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = pools[i].Close() }) // of a lost device it says so
	}
	return devs, pools
}

func leased(t *testing.T, p *stream.Pool) stream.Stream {
	t.Helper()
	s, err := p.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var errKilled = errors.New("the test killed it")

func TestARecordOfAnIdleStreamIsKnownToBeDone(t *testing.T) {
	_, pools := inline(t)
	s := leased(t, pools[0])
	ran := false
	if err := s.Call(func() { ran = true }); err != nil {
		t.Fatal(err)
	}
	if err := s.Synchronize(t.Context()); err != nil {
		t.Fatal(err)
	}
	c, err := s.Record()
	if err != nil || !c.Known() || !ran {
		t.Errorf("%v; known: %v, ran: %v; expected all of it done", err, c.Known(), ran)
	}
	if err := s.Release(); err != nil {
		t.Error(err)
	}
}

func TestAnIdleStreamOfALostDeviceIsNotRecorded(t *testing.T) {
	devs, pools := inline(t)
	s := leased(t, pools[0])
	devs[0].(interface{ Kill(error) }).Kill(errKilled)
	if _, err := s.Record(); !errors.Is(err, weir.ErrDeviceLost) || !errors.Is(err, errKilled) {
		t.Errorf("Record answers %v; expected the loss of the device", err)
	}
	_ = s.Release()
}

// TestAnIdleStreamThatWaitedForALostDeviceCarriesItsFailure: it is idle because the
// other device died, and what it did after that is worthless.
func TestAnIdleStreamThatWaitedForALostDeviceCarriesItsFailure(t *testing.T) {
	devs, pools := inline(t)
	near, far := leased(t, pools[0]), leased(t, pools[1])
	gate := make(chan struct{})
	if err := far.Call(func() { <-gate }); err != nil {
		t.Fatal(err)
	}
	c, err := far.Record()
	if err != nil {
		t.Fatal(err)
	}
	if err := near.Wait(c); err != nil {
		t.Fatal(err)
	}
	devs[1].(interface{ Kill(error) }).Kill(errKilled)
	if d, err := near.Submit(); err != nil {
		t.Fatal(err)
	} else if err := d.Synchronize(); err != nil { // idle now
		t.Fatal(err)
	}
	after, err := near.Record()
	if err != nil {
		t.Fatal(err)
	}
	if done, err := after.Done(); !done || !errors.Is(err, weir.ErrDeviceLost) {
		t.Errorf("what waited for a lost device is done: %v, with %v; expected the loss", done, err)
	}
	close(gate)
	_, _ = near.Release(), far.Release()
}

// TestRecordsOfAStreamThatTwoShareAreInOrder mixes records that take an event with
// records that find the stream idle.
func TestRecordsOfAStreamThatTwoShareAreInOrder(t *testing.T) {
	_, pools := inline(t)
	s := leased(t, pools[0])
	var all sync.WaitGroup
	for range 2 {
		mine, err := s.Retain()
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			for range 2000 {
				ran := false
				if err := mine.Call(func() { ran = true }); err != nil {
					t.Error(err)
					return
				}
				c, err := mine.Record()
				if err != nil {
					t.Error(err)
					return
				}
				if err := c.Wait(t.Context()); err != nil || !ran {
					t.Errorf("waited for a record: %v, and the work before it ran: %v", err, ran)
					return
				}
			}
			if err := mine.Release(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if err := s.Release(); err != nil {
		t.Error(err)
	}
}
