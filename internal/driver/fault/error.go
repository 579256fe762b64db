package fault

import (
	"errors"
	"fmt"

	"github.com/weirgo/weir"
)

// ErrInjected matches every error that a plan made up.
var ErrInjected = errors.New("injected failure")

// injected is the error that the nth counted call answers. A cause that is a
// *weir.Error is answered as it is, any other one is wrapped, and nil becomes
// a failure of the kind that the call has in life.
func injected(call Call, device string, n int, cause error) *weir.Error {
	if e, ok := cause.(*weir.Error); ok {
		return e
	}
	e := &weir.Error{Op: string(call), Device: device, Name: "INJECTED", Kind: weir.KindCUDA,
		Message: fmt.Sprintf("call %d was made to fail", n), Err: cause}
	switch {
	case cause != nil && errors.Is(cause, weir.ErrOutOfMemory):
		e.Kind = weir.KindOutOfMemory
	case cause != nil:
	case call.allocates():
		e.Kind = weir.KindOutOfMemory
		e.Err = fmt.Errorf("%w: %w", ErrInjected, weir.ErrOutOfMemory)
	default:
		e.Err = ErrInjected
	}
	return e
}
