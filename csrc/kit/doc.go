// Package kit makes the one folder of Weir's own that a build with the cuda tag
// needs besides NVIDIA's headers: include/ with compat's cuda.h and the lazy
// loader's header, lib/ with the archives that stand for CUDA's libraries. It
// finds no toolkit and sets no variable; package cudaenv does.
//
// A kit's name carries a hash of all that goes into it. So a kit is never
// changed: a new version of Weir makes another one beside it, the compiler's
// and Go's caches, which know a library by its path alone, cannot serve a stale
// one, and making a kit that is there costs a look. Old kits may be deleted at
// any time.
//
// Make may run in several processes at once: each builds in a folder of its own
// and renames it; the first wins. The kit belongs to nobody.
package kit
