//go:build cuda

package cuda

// #include "driver.h"
// #cgo nocallback weir_event_wait
import "C"

import "time"

// A wait for an event asks in C, which finds the end of short work at once but
// holds a system thread. So only a few do, and none for long; the others ask
// between naps, whose shortest takes a millisecond.
const (
	mostInC    = 8
	longestInC = 50 * time.Millisecond
	firstNap   = 200 * time.Microsecond
	longestNap = 5 * time.Millisecond
)

var inC = make(chan struct{}, mostInC)

// await waits for an event's latest record and answers as the driver does.
func (c *context) await(event C.uintptr_t) C.int {
	select {
	case inC <- struct{}{}:
		result := C.weir_event_wait(c.handle, event, C.int64_t(longestInC))
		<-inC
		if result != codeNotReady {
			return result
		}
	default:
	}
	for nap := firstNap; ; nap = min(nap+nap/32, longestNap) {
		if result := C.weir_event_wait(c.handle, event, 0); result != codeNotReady {
			return result
		}
		time.Sleep(nap)
	}
}
