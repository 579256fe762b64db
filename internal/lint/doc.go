// Package lint holds the rules of the tree that no tool knows: which package
// may import which, where cgo may be, what tests must not do. They are tests,
// so that the test command checks them.
package lint
