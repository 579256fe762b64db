package native

import (
	"context"
	"fmt"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/sharedlib"
	"github.com/weirgo/weir/runtime"
)

// Exports names what every downstream library has, and what its errors become.
type Exports struct {
	// CheckABI is int f(const rr_abi_tag *loaded), which refuses a runtime library
	// that it was not built for.
	CheckABI string
	// LastError and LastErrorKind are const char *f(void) and int f(void).
	LastError, LastErrorKind string
	// Wrap, if not nil, makes the library's failures errors of a type of the package's
	// own. It should unwrap to what it is given, so that errors.As finds both. Where it
	// answers nil, what it was given stays the error.
	Wrap func(*weir.Error) error
}

// Library is a downstream library that was loaded. It stays until the process ends.
// It is safe for concurrent use.
type Library struct {
	Checker
	file    sharedlib.Library
	runtime *entries // that it was built for
}

// Open loads a downstream library for ctx's device and has it check the ABI tag of
// the runtime library for such devices; who is what the library is called in errors.
// A path without a separator is looked for in the folders of WEIR_NATIVE_LIBRARY_PATH,
// then where the system's loader looks.
//
// A library that is missing, of another architecture, or without the exports is an
// ErrNotSupported; one that was built against other headers answers its own error, of
// kind logic, which says what differs.
func Open(ctx context.Context, who, path string, exports Exports) (*Library, error) {
	d, err := runtime.At(ctx)
	if err != nil {
		return nil, err
	}
	e, err := flavourOf(d).load(who)
	if err != nil {
		return nil, err
	}
	file, err := sharedlib.Open(who, sharedlib.NativePath, path)
	if err != nil {
		return nil, err
	}
	l := &Library{file: file, runtime: e}
	l.wrap = exports.Wrap
	if l.lastError, err = l.Symbol(who, exports.LastError); err != nil {
		return nil, err
	}
	if l.lastErrorKind, err = l.Symbol(who, exports.LastErrorKind); err != nil {
		return nil, err
	}
	check, err := l.Symbol(who, exports.CheckABI)
	if err != nil {
		return nil, err
	}
	if err := l.Check(who, func() int32 { return invoke(check, address(e.tag)) }); err != nil {
		return nil, err
	}
	return l, nil
}

// Symbol is the address of a function or variable of the library.
func (l *Library) Symbol(who, name string) (uintptr, error) {
	if l == nil || l.runtime == nil {
		return 0, refuse(who, weir.ErrArgument, "the library is %s; expected one that Open loaded", none(l == nil, "Library"))
	}
	return symbol(l.file, who, name)
}

// Func sets *fn, a variable of function type, to a function that calls the library's:
// the handle is an unsafe.Pointer, a view *View, a deposit *Record, an output a
// pointer, an int of C int32. What does not fit C panics; that the types are those of
// the C function nobody can check.
func (l *Library) Func(who, name string, fn any) error {
	at, err := l.Symbol(who, name)
	if err == nil {
		register(fn, at)
	}
	return err
}

// symbol is the address of an entry point that a library must have.
func symbol(l sharedlib.Library, who, name string) (uintptr, error) {
	if name == "" {
		return 0, fault(l, who, "the name of an entry point is empty; expected those of Exports")
	}
	return l.Symbol(who, name)
}

// fault says what is wrong with a library.
func fault(l sharedlib.Library, who, format string, args ...any) error {
	return &weir.Error{Op: who, Message: fmt.Sprintf("library %s: %s", l.Path, fmt.Sprintf(format, args...)), Err: weir.ErrNotSupported}
}
