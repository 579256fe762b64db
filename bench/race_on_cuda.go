//go:build race && cuda

package bench

// shadowed says that the race detector keeps several bytes for each that was ever
// touched and gives none back: the size of the process then says nothing.
const shadowed = true
