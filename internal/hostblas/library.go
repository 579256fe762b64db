package hostblas

import (
	"os"
	"runtime/debug"
	"sync"
)

// Library is one chosen BLAS and the cores that it may use.
type Library struct {
	name, version, path, reason string

	ext   *external // nil is gonum
	cores *cores
	grain float64 // grainNanos; tests lower it to divide small products
	// probe, where a test sets it, is told how many more threads start
	// (positive) or end (negative) computing.
	probe func(threads int)
}

// Default is the process's library, chosen at the first call from the
// environment variable WEIR_BLAS as Open says.
func Default() *Library { return chosen() }

var chosen = sync.OnceValue(func() *Library { return Open(os.Getenv("WEIR_BLAS")) })

// Open chooses a library. setting is one of
//
//   - "" or "auto": OpenBLAS where it is found, else gonum;
//   - "openblas": the same, and Reason says that the wish failed;
//   - "gonum";
//   - the path, or the name that the system's loader knows, of a shared
//     library that has the four gemm routines.
//
// OpenBLAS is searched in the folder that the environment variable
// WEIR_BLAS_DIR names, then by its usual names; see search.go. Open never
// fails: whatever does not work out, gonum is there, and Reason tells why.
func Open(setting string) *Library {
	l := choose(setting, usualPlaces())
	l.cores, l.grain = processCores(), grainNanos
	return l
}

// Name is "OpenBLAS", "gonum", or "BLAS" for a library that was named by its
// path and is not OpenBLAS.
func (l *Library) Name() string { return l.name }

// Version is OpenBLAS's own description of its version and build, or the
// version of the gonum module; "" when it is not known.
func (l *Library) Version() string { return l.version }

// Path is the loaded library's file, "" for gonum.
func (l *Library) Path() string { return l.path }

// Reason says in one sentence why this library was chosen, and what was tried
// and failed.
func (l *Library) Reason() string { return l.reason }

// Threads is the number of cores that all products of the process together
// may use: GOMAXPROCS when the first library was opened.
func (l *Library) Threads() int { return l.cores.total }

// useGonum is the library that needs nothing.
func useGonum(reason string) *Library {
	return &Library{name: "gonum", version: moduleVersion("gonum.org/v1/gonum"), reason: reason}
}

// useExternal is the loaded library e, which was found as name.
func useExternal(e *external, name, reason string) *Library {
	l := &Library{name: "OpenBLAS", version: e.config, path: e.path, reason: reason, ext: e}
	if !e.openBLAS {
		l.name = "BLAS"
	}
	if l.path == "" {
		l.path = name
	}
	return l
}

// moduleVersion is the version of a module that this program was built with.
func moduleVersion(path string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, m := range info.Deps {
		if m.Path == path {
			if m.Replace != nil {
				m = m.Replace
			}
			return m.Version
		}
	}
	return ""
}
