//go:build ((linux && !android) || darwin) && (amd64 || arm64)

package native

import "github.com/ebitengine/purego"

// register makes *fn, a Go function, call the C function at symbol.
func register(fn any, symbol uintptr) { purego.RegisterFunc(fn, symbol) }
