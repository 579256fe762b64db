package npyfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/weirgo/weir"
)

const op = "npy"

// refuse says that the file or array called name is not one that can be taken.
func refuse(name, format string, args ...any) error {
	return weir.Argf(op, "%s: %s", name, fmt.Sprintf(format, args...))
}

// failed says that the system, or the archive's decoder, refused with err.
func failed(name string, err error, format string, args ...any) error {
	return &weir.Error{Op: op, Message: name + ": " + fmt.Sprintf(format, args...), Err: &cause{err}}
}

// stopped says that ctx ended the work on name.
func stopped(ctx context.Context, name, format string, args ...any) error {
	return &weir.Error{Op: op, Message: name + ": " + fmt.Sprintf(format, args...), Err: ctx.Err()}
}

// cause lets an error match both a sentinel of Weir and what the system said.
// Its text leaves out the path, which the message above it has already named.
type cause struct{ err error }

func (c *cause) Error() string {
	if e, ok := errors.AsType[*fs.PathError](c.err); ok {
		return e.Err.Error()
	}
	if e, ok := errors.AsType[*os.LinkError](c.err); ok {
		return e.Err.Error()
	}
	return c.err.Error()
}

func (c *cause) Unwrap() []error {
	if errors.Is(c.err, fs.ErrClosed) {
		return []error{weir.ErrClosed, c.err}
	}
	return []error{weir.ErrArgument, c.err}
}
