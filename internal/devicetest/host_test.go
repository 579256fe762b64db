package devicetest_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/weirgo/weir/internal/devicetest"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/fault"
	"github.com/weirgo/weir/internal/driver/host"
)

var errKilled = errors.New("fell off the bus")

// hosts are two host devices, all of whose work runs on goroutines of its own.
func hosts() driver.Family {
	return host.New(host.Options{HandOver: true, Devices: 2, MemoryBytes: 4 << 30})
}

// stall has the host's streams run a call that does not return.
func stall(s driver.Stream) (release func(), err error) {
	idle, err := s.Query()
	if err != nil {
		return nil, err
	}
	held, gate := make(chan struct{}), make(chan struct{})
	if err := s.Call(func() {
		close(held)
		<-gate
	}); err != nil {
		return nil, err
	}
	if idle {
		<-held
	}
	return sync.OnceFunc(func() { close(gate) }), nil
}

func harness(families func() driver.Family) devicetest.Harness {
	return devicetest.Harness{
		Families: func(*testing.T) []driver.Family { return []driver.Family{families()} },
		Stall:    stall,
		Kill: func(d driver.Device) error {
			d.(interface{ Kill(error) }).Kill(errKilled)
			return errKilled
		},
	}
}

func TestHostDevicesKeepTheContract(t *testing.T) { devicetest.Run(t, harness(hosts)) }

// TestHostDevicesKeepTheContractThroughAPlan goes through package fault with an
// empty plan.
func TestHostDevicesKeepTheContractThroughAPlan(t *testing.T) {
	devicetest.Run(t, harness(func() driver.Family { return fault.New(hosts(), &fault.Plan{}) }))
}
