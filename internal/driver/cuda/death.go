//go:build cuda

package cuda

// #include "driver.h"
import "C"

import (
	"fmt"
	"maps"
	"slices"

	"github.com/weirgo/weir"
)

// die makes the device terminal. The first cause stays.
//
// A fault on one GPU ends all contexts of the process, in the driver; so each
// device dies by itself of what its own calls answer, with the family's first death
// as its cause. Which of them met the fault the driver does not say.
func (d *device) die(op string, code int) {
	if d.dead.Load() != nil {
		return
	}
	e := &weir.Error{Op: op, Device: d.name, Code: code, Name: nameOf(code), Kind: weir.KindCUDA,
		Message: textOf(code), Err: weir.ErrDeviceLost}
	f := d.family
	f.deaths.Lock()
	defer f.deaths.Unlock()
	switch first := f.first; {
	case d.dead.Load() != nil:
		return
	case first == nil:
		f.first = e
		go f.ask()
	case first.Code == code:
		e.Message, e.Err = fmt.Sprintf("first seen on %s; a fault on one GPU ends all CUDA devices of the process", first.Device), first
	}
	d.dead.Store(e)
	go notices.mourn(d) // not here: it calls wakers
}

// ask has each device in use say whether it died with the first, so that who waits
// for nothing but its error learns of it.
func (f *family) ask() {
	f.mu.Lock()
	devices := slices.Collect(maps.Values(f.devices))
	f.mu.Unlock()
	for _, d := range devices {
		if c := d.borrow(); c != nil {
			_ = d.check("Device.watch", C.weir_stream_query(c.handle, c.probe)) // the device keeps what matters
			d.release()
		}
	}
}
