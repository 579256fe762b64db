package hostblas

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
)

// external is a loaded shared library. There is one for each library of the
// process, however often and by whatever names it is opened, because its number
// of threads is a setting of the whole library.
type external struct {
	symbols
	path     string
	config   string // OpenBLAS's description of itself
	openBLAS bool
	// limit is the largest extent or leading dimension of one call.
	limit int64
	// threads is how many threads of its own a product may have.
	threads int
	// exclusive: the library was built for a program of one thread, so that
	// only one product may run.
	exclusive bool
	// ompThreads, of a library built with OpenMP, sets the number of threads of
	// the calling system thread; 0 otherwise.
	ompThreads uintptr
}

// symbols are the entry points of a library. The four gemm routines are always
// there; gesdd where the library has LAPACK; the others only in OpenBLAS.
type symbols struct {
	gemm, gesdd                                          [4]uintptr // s, d, c, z
	setNumThreads, getNumThreads, getConfig, getParallel uintptr
	wide                                                 bool // the names say 64-bit integers
}

// The names of the entry points: the classical ones, those of a build with
// 64-bit integers and suffixed names, and both with the prefix that the wheels
// scipy-openblas32 and scipy-openblas64 put in front.
var namings = []struct {
	prefix, routine, function string
	wide                      bool
}{
	{"", "_", "", false},
	{"", "_64_", "64_", true},
	{"scipy_", "_", "", false},
	{"scipy_", "_64_", "64_", true},
}

// findSymbols looks the entry points up; find answers 0 for a name that is not
// there.
func findSymbols(find func(name string) uintptr) (symbols, error) {
	for _, n := range namings {
		var s symbols
		var missing []string
		for i, letter := range "sdcz" {
			name := n.prefix + string(letter) + "gemm" + n.routine
			if s.gemm[i] = find(name); s.gemm[i] == 0 {
				missing = append(missing, name)
			}
		}
		switch len(missing) {
		case 4:
			continue
		case 0:
		default:
			return symbols{}, fmt.Errorf("lacks symbol %s", strings.Join(missing, ", "))
		}
		function := func(name string) uintptr { return find(n.prefix + name + n.function) }
		for i, letter := range "sdcz" {
			s.gesdd[i] = find(n.prefix + string(letter) + "gesdd" + n.routine)
		}
		s.setNumThreads = function("openblas_set_num_threads")
		s.getNumThreads = function("openblas_get_num_threads")
		s.getConfig = function("openblas_get_config")
		s.getParallel = function("openblas_get_parallel")
		s.wide = n.wide
		return s, nil
	}
	return symbols{}, errors.New("lacks symbol sgemm_ (also sgemm_64_, scipy_sgemm_ and scipy_sgemm_64_)")
}

// The answers of openblas_get_parallel.
const (
	builtSerial = 0
	builtOpenMP = 2
)

var loaded struct {
	// mu guards libraries and the set-up of one; no product runs under it.
	mu        sync.Mutex
	libraries map[uintptr]*external // by the address of sgemm
}

// load opens the library that the system's loader knows as name. A library
// that is not OpenBLAS is refused unless anyBLAS.
func load(name string, anyBLAS bool) (*external, error) {
	handle, err := openShared(name)
	if err != nil {
		return nil, err
	}
	find := func(symbol string) uintptr { return handle.symbol(symbol) }
	e, err := adopt(find, anyBLAS)
	if err != nil {
		handle.close()
		return nil, err
	}
	return e, nil
}

// adopt makes an external of the library whose symbols find answers.
func adopt(find func(name string) uintptr, anyBLAS bool) (*external, error) {
	s, err := findSymbols(find)
	if err != nil {
		return nil, err
	}
	if s.setNumThreads == 0 && !anyBLAS {
		return nil, errors.New("lacks symbol openblas_set_num_threads: a BLAS, but not OpenBLAS; name it by its path to use it")
	}
	loaded.mu.Lock()
	defer loaded.mu.Unlock()
	if e := loaded.libraries[s.gemm[0]]; e != nil {
		return e, nil
	}
	e := &external{symbols: s, path: fileOf(s.gemm[0]), openBLAS: s.setNumThreads != 0, threads: 1}
	if s.getConfig != 0 {
		e.config = textAt(invoke(s.getConfig, nil))
	}
	// A build with 64-bit integers may use the classical names. Passing 64-bit
	// integers by address suits both kinds on a little-endian processor; only
	// their range differs.
	if s.wide || strings.Contains(e.config, "USE64BITINT") {
		e.limit = math.MaxInt64
	} else {
		e.limit = 1 << 30
	}
	e.setUpThreads(find)
	if err := e.check(); err != nil {
		return nil, err
	}
	if loaded.libraries == nil {
		loaded.libraries = map[uintptr]*external{}
	}
	loaded.libraries[s.gemm[0]] = e
	return e, nil
}

// setUpThreads makes calls single-threaded, and finds out whether the library
// can do better when it is alone. OPENBLAS_NUM_THREADS and its like, which the
// library read when it was loaded, stay an upper bound.
func (e *external) setUpThreads(find func(name string) uintptr) {
	if !e.openBLAS {
		return
	}
	parallel := -1
	if e.getParallel != 0 {
		parallel = int(int32(invoke(e.getParallel, nil)))
	}
	switch parallel {
	case builtSerial:
		e.exclusive = true
	case builtOpenMP:
		// Its threads belong to the calling system thread, and there would be a
		// team of them for each one that a goroutine happens to run on. So its
		// products are divided outside.
		if e.ompThreads = find("omp_set_num_threads"); e.ompThreads == 0 {
			e.ompThreads = e.setNumThreads
		}
	default:
		if e.getNumThreads != 0 {
			e.threads = int(int32(invoke(e.getNumThreads, nil)))
		}
		e.setThreads(1, new([1]uintptr))
	}
}

// setThreads sets the number of threads of every later call; only while no
// call runs. args is room for the argument.
func (e *external) setThreads(n int, args *[1]uintptr) {
	args[0] = uintptr(n)
	invoke(e.setNumThreads, args[:])
}

// oneThread is the argument of a call that sets one thread.
var oneThread = []uintptr{1}

// compute does p in as few calls as the library's integers allow.
func (e *external) compute(w *worker, p product) {
	if e.ompThreads != 0 {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		invoke(e.ompThreads, oneThread)
	}
	switch {
	case max(p.m, p.n, p.k, p.lda, p.ldb, p.ldc) <= e.limit:
		e.multiply(w.call, &p)
	case max(p.lda, p.ldb, p.ldc) > e.limit:
		stagedFloat(w, p)
	default:
		block := extent{e.limit, e.limit, e.limit}
		for l := int64(0); l < p.k; l += e.limit {
			for j := int64(0); j < p.n; j += e.limit {
				for i := int64(0); i < p.m; i += e.limit {
					q := p.block(i, j, l, block.within(p.m-i, p.n-j, p.k-l))
					e.multiply(w.call, &q)
				}
			}
			p.beta = 1
		}
	}
}
