// Package sharedlib loads shared libraries without cgo and calls their functions.
//
// A library is looked for by its name in the folders of an environment variable, then
// where the system's loader looks, and stays until the process ends. Where it cannot
// be loaded, the error says which library, where it was looked for or what is wrong
// with the file, and is an ErrNotSupported; so it is on systems where libraries are
// not loaded at all.
//
// It knows no library's functions, and nothing checks that they are called as they
// are declared. Concurrency: everything is safe for concurrent use.
package sharedlib
