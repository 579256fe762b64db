package raft

import (
	"errors"
	"fmt"
	goruntime "runtime"
	"sync"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/sharedlib"
)

// library is what is called of a loaded library: how it says what failed.
type library struct {
	lastError, lastErrorKind uintptr
}

// native is libraftrkt, which makes RAFT's handles, and operations is libweirraft,
// which computes with them.
type native struct {
	library
	create, handle, release uintptr
}
type operations struct {
	library
	open, close                 uintptr
	gemm, rsvd, reduce, selectK uintptr
}

type libraries struct {
	native     native
	operations operations
}

// loaded is both libraries. Once they are loaded they stay.
var loaded struct {
	mu sync.Mutex // held while they are loaded
	*libraries
}

// load answers the libraries. A failure is answered to who asked, and the next one
// tries again.
func load(op string) (*libraries, error) {
	loaded.mu.Lock()
	defer loaded.mu.Unlock()
	if loaded.libraries == nil {
		l, err := open(op)
		if err != nil {
			return nil, err
		}
		loaded.libraries = l
	}
	return loaded.libraries, nil
}

// symbol is an entry point to find.
type symbol struct {
	name string
	at   *uintptr
}

func open(op string) (*libraries, error) {
	l := &libraries{}
	n, o := &l.native, &l.operations
	var abi, check uintptr
	if err := find(op, "libraftrkt.so", symbol{"rr_last_error", &n.lastError}, symbol{"rr_last_error_kind", &n.lastErrorKind}, symbol{"rr_abi", &abi},
		symbol{"rr_resources_create", &n.create}, symbol{"rr_resources_handle", &n.handle}, symbol{"rr_resources_release", &n.release}); err != nil {
		return nil, err
	}
	if err := find(op, "libweirraft.so", symbol{"wr_last_error", &o.lastError}, symbol{"wr_last_error_kind", &o.lastErrorKind}, symbol{"wr_check_abi", &check},
		symbol{"wr_open", &o.open}, symbol{"wr_close", &o.close},
		symbol{"wr_gemm", &o.gemm}, symbol{"wr_rsvd", &o.rsvd}, symbol{"wr_reduce", &o.reduce}, symbol{"wr_select_k", &o.selectK}); err != nil {
		return nil, err
	}
	if err := o.call(op, "", check, sharedlib.Call(abi)); err != nil {
		return nil, err
	}
	return l, nil
}

// find loads one of the libraries and its entry points.
func find(op, file string, symbols ...symbol) error {
	lib, err := sharedlib.Open(op, sharedlib.NativePath, file)
	if err != nil {
		if e, ok := errors.AsType[*weir.Error](err); ok {
			e.Message = fmt.Sprintf("RAFT, which make raft builds: %s", e.Message)
		}
		return err
	}
	for _, s := range symbols {
		if *s.at, err = lib.Symbol(op, s.name); err != nil {
			return err
		}
	}
	return nil
}

// call calls an entry point, and makes an error of what it answers. A library keeps its
// last error for each thread, so the goroutine stays on one. What addresses stand for
// the caller keeps reachable.
func (l *library) call(op, device string, fn uintptr, args ...uintptr) error {
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	status := int32(sharedlib.Call(fn, args...))
	if status == 0 {
		return nil
	}
	e := sharedlib.Failure(op, status, sharedlib.Text(sharedlib.Call(l.lastError)), int32(sharedlib.Call(l.lastErrorKind)))
	e.Device = device
	return e
}
