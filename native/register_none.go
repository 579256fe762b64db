//go:build !(((linux && !android) || darwin) && (amd64 || arm64))

package native

// register is never called, since no library is loaded.
func register(any, uintptr) {}
