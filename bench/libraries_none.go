//go:build !cuda

package bench

// Without the tag there is no GPU that has libraries.
func gpuLibraries() string { return "" }
