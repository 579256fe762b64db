//go:build cuda

package cuda_test

import (
	"errors"
	"testing"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver/cuda/cudatest"
)

// ends are the codes that end a device, and what cuda.h of CUDA 13.0 says of them.
var ends = map[int]string{
	4:   "the driver is in the process of shutting down",
	46:  "the device is unavailable at the current time",
	201: "the context is not a valid handle",
	214: "an uncorrectable ECC error was detected during execution",
	220: "an uncorrectable NVLink error was detected during the execution",
	226: "the process is left in an inconsistent state and must be relaunched",
	700: "the process is left in an inconsistent state and must be relaunched",
	702: "the process is left in an inconsistent state and must be relaunched",
	709: "the context has been destroyed",
	710: "the context cannot be used anymore, and must be destroyed",
	714: "the process is left in an inconsistent state and must be relaunched",
	715: "the process is left in an inconsistent state and must be relaunched",
	716: "the process is left in an inconsistent state and must be relaunched",
	717: "the process is left in an inconsistent state and must be relaunched",
	718: "the process is left in an inconsistent state and must be relaunched",
	719: "the process is left in an inconsistent state and must be relaunched",
	721: "the process is left in an inconsistent state and must be relaunched",
	810: "the process must be terminated and relaunched",
	911: "the process is left in an inconsistent state and must be relaunched",
	999: "an unknown internal error has occurred",
}

// TestTheCodesThatEndAContextEndTheDevice has a call answer each number that a
// CUresult can have.
func TestTheCodesThatEndAContextEndTheDevice(t *testing.T) {
	simulated(t)
	const notReady = 600 // no error of a query
	for code := 1; code < 1000; code++ {
		if code == notReady {
			continue
		}
		d := must(gpus(t).Open(0))
		s := must(d.NewStream(0))
		cudatest.Fail("cuStreamQuery", 1, code)
		_, err := s.Query()
		var e *weir.Error
		if !errors.As(err, &e) || e.Code != code {
			t.Errorf("%d: Query answers %v", code, err)
		}
		reason, fatal := ends[code]
		if lost := d.Err() != nil; lost != fatal || errors.Is(err, weir.ErrDeviceLost) != fatal {
			t.Errorf("%d: the device's error is %v; cuda.h says: %q", code, d.Err(), reason)
		}
		err = s.Destroy()
		if fatal {
			revive(t) // the stream is left to the context
		} else {
			ok(t, err)
		}
	}
}
