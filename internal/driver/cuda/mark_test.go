//go:build cuda

package cuda_test

import (
	"errors"
	"testing"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/cuda/cudatest"
)

// timed makes, uses and destroys two marks, and answers the first error.
func timed(d driver.Device, s driver.Stream) error {
	from, err := d.NewMark()
	if err != nil {
		return err
	}
	to, err := d.NewMark()
	if err != nil {
		return errors.Join(err, from.Destroy())
	}
	err = s.Mark(from)
	if err == nil {
		err = s.Mark(to)
	}
	if err == nil {
		_, err = to.Since(from)
	}
	return errors.Join(err, from.Destroy(), to.Destroy())
}

func TestAMarkWhoseCallFailsSaysSoAndLeavesNothing(t *testing.T) {
	simulated(t)
	d := must(gpus(t).Open(0))
	s := must(d.NewStream(0))
	ok(t, timed(d, s))
	events := cudatest.Live("event")
	for function, op := range map[string]string{"cuEventCreate": "Device.NewMark", "cuEventRecord": "Stream.Mark",
		"cuEventSynchronize": "Mark.Since", "cuEventElapsedTime": "Mark.Since", "cuEventDestroy_v2": "Mark.Destroy"} {
		before := cudatest.Count(function)
		ok(t, timed(d, s))
		calls := cudatest.Count(function) - before
		if calls == 0 {
			t.Errorf("%s is never called", function)
		}
		for nth := 1; nth <= calls; nth++ {
			cudatest.Fail(function, nth, 1)
			err := timed(d, s)
			var e *weir.Error
			if !errors.As(err, &e) || e.Op != op || e.Device != "cuda:0" || e.Name != "CUDA_ERROR_INVALID_VALUE" {
				t.Errorf("call %d of %s: %v; expected the failure of %s", nth, function, err, op)
			}
			if function == "cuEventDestroy_v2" {
				events++ // the simulator did not destroy it
			}
			if n := cudatest.Live("event"); n != events {
				t.Fatalf("call %d of %s: there are %d events; expected %d", nth, function, n, events)
			}
		}
	}
	ok(t, s.Destroy())
}
