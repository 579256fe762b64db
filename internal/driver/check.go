package driver

import (
	"math"

	"github.com/weirgo/weir"
)

// firstAddress is where addresses begin: the first page of memory has none.
const firstAddress = 4096

// Valid says whether p can be an address.
func (p Ptr) Valid() bool { return p >= firstAddress }

// mostBytes is what the views and matrices of one call stay below.
const mostBytes = math.MaxInt64 / 2

// argument is an ErrArgument of a call on the named device.
func argument(op, device, format string, args ...any) *weir.Error {
	e := weir.Argf(op, format, args...)
	e.Device = device
	return e
}
