package native

import (
	"fmt"
	goruntime "runtime"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/sharedlib"
)

// Checker makes errors of what a library's functions answer.
type Checker struct {
	lastError, lastErrorKind uintptr
	wrap                     func(*weir.Error) error // or nil
}

// Check calls a function of the library, as fn does, and answers nil if that answers
// 0. Otherwise the error is a *weir.Error with who as its Op, and the message and the
// kind of the library's last error; or what Exports.Wrap makes of it. An out-of-memory
// error is an ErrOutOfMemory.
//
// fn is called on a locked OS thread, since a library keeps its last error for each
// thread; it holds that thread until it returns. What can run long is a Job. To ask
// for one in fn is refused. When fn answers 0, Check allocates nothing.
//
//go:noinline
func (c *Checker) Check(who string, fn func() int32) error {
	if fn == nil {
		return weir.Argf(who, "the function is nil; expected one to call")
	}
	if c.lastError == 0 {
		return weir.Argf(who, "the checker is that of no library; expected one that Open loaded")
	}
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	status := fn()
	if status == 0 {
		return nil
	}
	return c.failed(who, status, sharedlib.Text(sharedlib.Call(c.lastError)), invoke(c.lastErrorKind))
}

// failed is the error of a call or a job.
func (c *Checker) failed(who string, status int32, message string, kind int32) error {
	e := sharedlib.Failure(who, status, message, kind)
	if c.wrap != nil {
		if err := c.wrap(e); err != nil {
			return err
		}
	}
	return e
}

// none is what was given in the place of a thing of that name: nil, or the zero one.
func none(isNil bool, what string) string {
	if isNil {
		return "nil"
	}
	return "the zero " + what
}

// refuse is an error of kind logic that Weir finds, before native code does.
func refuse(who string, cause error, format string, args ...any) error {
	return &weir.Error{Op: who, Kind: weir.KindLogic, Message: fmt.Sprintf(format, args...), Err: cause}
}
