package stream_test

import (
	"errors"
	"testing"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver/host"
	"github.com/weirgo/weir/stream"
)

// TestACallOfNoFunctionIsRefusedAndCostsNoDevice.
func TestACallOfNoFunctionIsRefusedAndCostsNoDevice(t *testing.T) {
	for _, handOver := range []bool{false, true} {
		dev, err := host.New(host.Options{HandOver: handOver}).Open(0)
		if err != nil {
			t.Fatal(err)
		}
		pool, err := stream.NewPool(dev, stream.Options{Count: 1})
		if err != nil {
			t.Fatal(err)
		}
		s, err := pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Call(nil); !errors.Is(err, weir.ErrArgument) {
			t.Errorf("Call(nil) answers %v; expected an ErrArgument", err)
		}
		if err := errors.Join(s.Synchronize(t.Context()), dev.Err(), s.Release(), pool.Close()); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	}
}
