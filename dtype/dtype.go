// Package dtype names the element types of tensors. An element type is data
// in Weir (as in NumPy and MLX), not a type parameter: an array carries a
// DType, and typed Go slices go in and out through generic functions that
// check it.
//
// Concurrency: everything here is immutable.
package dtype

import (
	"fmt"
	"slices"
	"strings"

	"github.com/x448/float16"

	"github.com/weirgo/weir"
)

// DType is an element type. Its numbers are those of the native interface
// where that has the type (float32 0, float64 1, int32 2, int64 3).
type DType uint8

const (
	Float32 DType = iota
	Float64
	Int32
	Int64
	Complex64
	Complex128
	Float16  // IEEE binary16; stored, accumulated in float32
	BFloat16 // the upper half of a float32; stored, accumulated in float32
	count
)

var names = [count]string{"float32", "float64", "int32", "int64", "complex64", "complex128", "float16", "bfloat16"}
var sizes = [count]int64{4, 8, 4, 8, 8, 16, 2, 2}

// String is NumPy's name of the type.
func (d DType) String() string {
	if d < count {
		return names[d]
	}
	return fmt.Sprintf("dtype(%d)", uint8(d))
}

// Valid says whether d is one of the declared types.
func (d DType) Valid() bool { return d < count }

// Size is the number of bytes of one element.
func (d DType) Size() int64 {
	if d < count {
		return sizes[d]
	}
	return 0
}

// IsComplex says whether elements have an imaginary part.
func (d DType) IsComplex() bool { return d == Complex64 || d == Complex128 }

// IsInteger says whether elements are integers.
func (d DType) IsInteger() bool { return d == Int32 || d == Int64 }

// Real is the type of the parts of a complex type's elements, else d itself.
func (d DType) Real() DType {
	switch d {
	case Complex64:
		return Float32
	case Complex128:
		return Float64
	}
	return d
}

// All lists every type, in the order of their numbers.
func All() []DType {
	all := make([]DType, count)
	for i := range all {
		all[i] = DType(i)
	}
	return all
}

// Names lists every name, in the order of All.
func Names() []string { return slices.Clone(names[:]) }

// Parse finds a type by its name; case does not matter. An unknown name is an
// ErrArgument that lists the known ones.
func Parse(name string) (DType, error) {
	if i := slices.Index(names[:], strings.ToLower(name)); i >= 0 {
		return DType(i), nil
	}
	return 0, weir.Argf("dtype.Parse", "unknown dtype %q; known are %s", name, strings.Join(names[:], ", "))
}

// BF16 is one bfloat16 element as Go code holds it.
type BF16 uint16

// ToBF16 rounds to nearest, ties to even; NaN stays NaN.
func ToBF16(f float32) BF16 { return BF16(bf16Bits(f)) }

// Float32 widens exactly.
func (b BF16) Float32() float32 { return bf16Float(uint16(b)) }

func (b BF16) String() string { return fmt.Sprint(b.Float32()) }

// Element is the set of Go types that elements of arrays have: one for each
// DType.
type Element interface {
	float32 | float64 | int32 | int64 | complex64 | complex128 | float16.Float16 | BF16
}

// Of is the DType of a Go element type.
func Of[T Element]() DType {
	var zero T
	switch any(zero).(type) {
	case float32:
		return Float32
	case float64:
		return Float64
	case int32:
		return Int32
	case int64:
		return Int64
	case complex64:
		return Complex64
	case complex128:
		return Complex128
	case float16.Float16:
		return Float16
	}
	return BFloat16
}
