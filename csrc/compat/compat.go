// Package compat holds cuda.h, a header that stands before NVIDIA's in the
// include path of a build with the cuda tag and keeps the prototypes that
// gorgonia.org/cu v0.9.6 was written for. The header says what and why. The
// package itself only carries its text; package kit puts it where a compiler
// finds it.
package compat

import _ "embed"

// Header is cuda.h.
//
//go:embed cuda.h
var Header string
