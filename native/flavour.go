package native

import (
	"errors"
	"fmt"
	goruntime "runtime"
	"sync"
	"unsafe"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/hostmem"
	"github.com/weirgo/weir/internal/sharedlib"
	"github.com/weirgo/weir/runtime"
)

// flavour is libraftrkt as one kind of device needs it. It is loaded at its first
// use and stays.
type flavour struct {
	name string // of the library, without lib and what the system appends
	what string // devices, for messages
	made string // how it is built
	cuda bool   // the tag of its libraries has a CUDA runtime

	mu     sync.Mutex // held while it is loaded
	loaded *entries
}

var (
	onHost = &flavour{name: "raftrkt_host", what: "host devices", made: "make native"}
	onCUDA = &flavour{name: "raftrkt", what: "CUDA devices", made: "make raft", cuda: true}
)

// flavourOf is the flavour for a device.
func flavourOf(d runtime.Device) *flavour {
	if d.IsHost() {
		return onHost
	}
	return onCUDA
}

// entries are the entry points of a loaded libraftrkt.
type entries struct {
	Checker
	flavour *flavour
	tag     *ABITag

	create, handle, synchronize, release uintptr
	job, bind, depositRelease            uintptr
}

// load answers the entry points. A failure is answered to who asked, and the next
// one tries again.
func (f *flavour) load(who string) (*entries, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.loaded == nil {
		e, err := f.open(who)
		if err != nil {
			return nil, err
		}
		f.loaded = e
	}
	return f.loaded, nil
}

func (f *flavour) open(who string) (*entries, error) {
	library, err := sharedlib.Open(who, sharedlib.NativePath, sharedName(f.name))
	if err != nil {
		if e, ok := errors.AsType[*weir.Error](err); ok {
			e.Message = fmt.Sprintf("the runtime library for %s, which %s builds: %s", f.what, f.made, e.Message)
		}
		return nil, err
	}
	e := &entries{flavour: f}
	var abi uintptr
	for _, s := range []struct {
		name string
		at   *uintptr
	}{
		{"rr_last_error", &e.lastError}, {"rr_last_error_kind", &e.lastErrorKind}, {"rr_abi", &abi},
		{"rr_resources_create", &e.create}, {"rr_resources_handle", &e.handle},
		{"rr_resources_synchronize", &e.synchronize}, {"rr_resources_release", &e.release},
		{"rr_resources_job", &e.job}, {"rr_view_bind", &e.bind}, {"rr_deposit_release", &e.depositRelease},
	} {
		if *s.at, err = library.Symbol(who, s.name); err != nil {
			return nil, err
		}
	}
	e.tag = (*ABITag)(hostmem.Pointer(sharedlib.Call(abi)))
	if e.tag == nil {
		return nil, fault(library, who, "it has no ABI tag; install the one of this release")
	}
	if e.tag.Version != abiVersion {
		return nil, fault(library, who, "its ABI version is %d, and this program's %d; install the one of this release", e.tag.Version, abiVersion)
	}
	if (e.tag.CUDARuntime != 0) != f.cuda {
		return nil, fault(library, who, "it is not the flavour for %s", f.what)
	}
	return e, nil
}

// ABI is the tag of the runtime library for d, which a downstream library's check is
// to be given. It lasts as long as the process and is not to be changed.
func ABI(d runtime.Device) (*ABITag, error) {
	const op = "native.ABI"
	if d.IsZero() {
		return nil, weir.Argf(op, "the zero Device; expected one from runtime")
	}
	e, err := flavourOf(d).load(op)
	if err != nil {
		return nil, err
	}
	return e.tag, nil
}

// invoke calls a C function that answers an int. args are integers, and addresses that
// address made. It costs about 0.1 µs, and allocates nothing if args is on the heap.
func invoke(fn uintptr, args ...uintptr) int32 { return int32(sharedlib.Call(fn, args...)) }

// call is a checked call of an entry point.
func (e *entries) call(who string, fn uintptr, args ...uintptr) error {
	return e.Check(who, func() int32 { return invoke(fn, args...) })
}

// address is p as an argument. What it points to is on the heap, where nothing moves;
// the caller keeps it reachable.
func address[T any](p *T) uintptr {
	onHeap(p)
	return uintptr(unsafe.Pointer(p))
}

// onHeap does nothing, which the compiler does not know.
var onHeap = func(any) {}

// sharedName is a library's file on this system.
func sharedName(name string) string {
	if goruntime.GOOS == "darwin" {
		return "lib" + name + ".dylib"
	}
	return "lib" + name + ".so"
}
