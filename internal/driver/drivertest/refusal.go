package drivertest

import (
	"errors"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver"
)

// refused fails the test unless err is a proper error of call on d that
// matches sentinel. A nil d is an error of the family, a nil sentinel any.
func (f *fixture) refused(err error, call string, d driver.Device, sentinel error) {
	f.t.Helper()
	if err == nil {
		f.t.Errorf("%s answered nil; expected an error", call)
		return
	}
	e, ok := err.(*weir.Error)
	if !ok {
		f.t.Errorf("%s answered a %T (%v); expected a *weir.Error", call, err, err)
		return
	}
	if e.Op != call {
		f.t.Errorf("%s answered an error of operation %q (%v)", call, e.Op, err)
	}
	if d != nil && e.Device != d.Name() {
		f.t.Errorf("%s on %s answered an error of device %q (%v)", call, d.Name(), e.Device, err)
	}
	if sentinel != nil && !errors.Is(err, sentinel) {
		f.t.Errorf("%s answered %v; expected one that matches %q", call, err, sentinel)
	}
	if sentinel != weir.ErrDeviceLost && d != nil && d.Err() != nil {
		f.t.Fatalf("%s killed %s: %v", call, d.Name(), d.Err())
	}
}

// proper fails the test unless err is nil or refused would take it.
func (f *fixture) proper(err error, call string, d driver.Device, sentinel error) {
	f.t.Helper()
	if err != nil {
		f.refused(err, call, d, sentinel)
	}
}

// second drops a value, to look at the error alone.
func second[T any](_ T, err error) error { return err }
