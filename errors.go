package weir

import (
	"errors"
	"fmt"
	"strings"
)

// The sentinels. Each names a class of failure that a caller can act on;
// match them with errors.Is.
var (
	// ErrArgument: a value given by the caller is not one that the call takes.
	ErrArgument = errors.New("invalid argument")
	// ErrOutOfMemory: a device or page-locked allocation was refused.
	ErrOutOfMemory = errors.New("out of memory")
	// ErrClosed: the object, or the runtime that owned it, was closed or freed.
	ErrClosed = errors.New("closed")
	// ErrStale: a handle whose lease ended, or a copy of one, was used.
	ErrStale = errors.New("stale handle")
	// ErrBusy: an access would overlap one that excludes it.
	ErrBusy = errors.New("access conflict")
	// ErrUninitialized: a value was read that was never written.
	ErrUninitialized = errors.New("never written")
	// ErrPoisoned: a value carries the failure of the operation that was to
	// produce it.
	ErrPoisoned = errors.New("poisoned")
	// ErrNotSupported: the device, build or library has no such operation.
	ErrNotSupported = errors.New("not supported")
	// ErrNotRecordable: a graph cannot have the operation.
	ErrNotRecordable = errors.New("not recordable")
	// ErrNoDevice: no device of that name, or no device at all.
	ErrNoDevice = errors.New("no such device")
	// ErrNotStarted: no runtime is installed.
	ErrNotStarted = errors.New("no runtime is started")
	// ErrDeviceLost: the device's context is dead; nothing more runs on it.
	ErrDeviceLost = errors.New("device lost")
	// ErrLeak: something of the runtime outlived it.
	ErrLeak = errors.New("leaked")
	// ErrCancelled: the context of an operation or a wait ended.
	ErrCancelled = errors.New("cancelled")
	// ErrDeadlock: tasks wait for one another, or for what nobody is to give.
	ErrDeadlock = errors.New("deadlock")
	// ErrPanic: a task panicked, or ended its goroutine.
	ErrPanic = errors.New("panic")
	// ErrLimit: a configured limit is reached.
	ErrLimit = errors.New("limit reached")
)

// Kind is the coarse class of an error. Its numbers are those of the native
// interface.
type Kind int32

const (
	KindGeneric     Kind = 0
	KindOutOfMemory Kind = 1
	KindCUDA        Kind = 2 // the driver or a library of the device refused
	KindLogic       Kind = 3 // the caller broke a rule
)

func (k Kind) String() string {
	switch k {
	case KindOutOfMemory:
		return "out-of-memory"
	case KindCUDA:
		return "cuda"
	case KindLogic:
		return "logic"
	}
	return "generic"
}

// Error is the one structured error of Weir. Fields that do not apply are
// zero. It is immutable.
type Error struct {
	Op      string // what was asked, as "stream.Record"
	Device  string // "host:0", "cuda:1"
	Stream  string // the stream's name in its pool, as "host:0/3"
	Code    int    // the driver's or library's number
	Name    string // its symbolic name, as "CUDA_ERROR_INVALID_VALUE"
	Kind    Kind
	Message string // what was given and what was expected
	Site    string // "file.go:12" of the call, where known
	Stack   string // the stack of the call, in debug mode
	Err     error  // a sentinel, or the error that caused this one
}

// Error renders one line: operation, place, message, and the cause's own line.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Op)
	if at := e.Stream; at != "" {
		fmt.Fprintf(&b, " on stream %s", at)
	} else if e.Device != "" {
		fmt.Fprintf(&b, " on %s", e.Device)
	}
	if e.Message != "" {
		b.WriteString(": ")
		b.WriteString(e.Message)
	}
	if e.Name != "" {
		fmt.Fprintf(&b, " (%s, code %d)", e.Name, e.Code)
	}
	if e.Err != nil && (e.Message == "" || !isSentinel(e.Err)) {
		b.WriteString(": ")
		b.WriteString(e.Err.Error())
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

func isSentinel(err error) bool {
	switch err {
	case ErrArgument, ErrOutOfMemory, ErrClosed, ErrStale, ErrBusy, ErrUninitialized, ErrPoisoned,
		ErrNotSupported, ErrNoDevice, ErrNotStarted, ErrDeviceLost, ErrLeak, ErrCancelled, ErrDeadlock, ErrPanic, ErrLimit:
		return true
	}
	return false
}

// Cancelled is the error of what ended because its context did: cause, and
// ErrCancelled too.
func Cancelled(cause error) error { return &cancelled{cause} }

type cancelled struct{ cause error }

func (c *cancelled) Error() string        { return c.cause.Error() }
func (c *cancelled) Unwrap() error        { return c.cause }
func (c *cancelled) Is(target error) bool { return target == ErrCancelled }

// Argf makes an argument error of operation op.
func Argf(op, format string, args ...any) *Error {
	return &Error{Op: op, Kind: KindLogic, Message: fmt.Sprintf(format, args...), Err: ErrArgument}
}

// Report renders err with every cause below it, one a line and indented by
// depth, each with its operation, place, code, kind, site and stack. It is for
// people; programs use errors.Is and errors.As. Report(nil) is "".
func Report(err error) string {
	var b strings.Builder
	report(&b, err, 0)
	return b.String()
}

func report(b *strings.Builder, err error, depth int) {
	if err == nil {
		return
	}
	indent := strings.Repeat("  ", depth)
	e, ok := err.(*Error)
	if !ok {
		causes := causesOf(err)
		if joined := errors.Join(causes...); joined == nil || joined.Error() != err.Error() { // else it says nothing of its own
			fmt.Fprintf(b, "%s%s\n", indent, strings.ReplaceAll(err.Error(), "\n", "\n"+indent))
			depth++
		}
		for _, c := range causes {
			report(b, c, depth)
		}
		return
	}
	head := e.Op
	if e.Message != "" {
		head += ": " + e.Message
	}
	fmt.Fprintf(b, "%s%s\n", indent, head)
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(b, "%s  %s: %s\n", indent, name, value)
		}
	}
	line("kind", e.Kind.String())
	line("device", e.Device)
	line("stream", e.Stream)
	if e.Name != "" {
		line("code", fmt.Sprintf("%s (%d)", e.Name, e.Code))
	}
	line("at", e.Site)
	line("stack", strings.ReplaceAll(strings.TrimSpace(e.Stack), "\n", "\n"+indent+"    "))
	if e.Err != nil {
		fmt.Fprintf(b, "%s  because:\n", indent)
		report(b, e.Err, depth+2)
	}
}

func causesOf(err error) []error {
	switch e := err.(type) {
	case interface{ Unwrap() []error }:
		return e.Unwrap()
	case interface{ Unwrap() error }:
		return []error{e.Unwrap()}
	}
	return nil
}
