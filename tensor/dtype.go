package tensor

import (
	"github.com/x448/float16"

	"github.com/weirgo/weir/dtype"
)

// DType is an element type.
type DType = dtype.DType

const (
	Float32    = dtype.Float32
	Float64    = dtype.Float64
	Int32      = dtype.Int32
	Int64      = dtype.Int64
	Complex64  = dtype.Complex64
	Complex128 = dtype.Complex128
	Float16    = dtype.Float16
	BFloat16   = dtype.BFloat16
)

// F16 and BF16 are the Go types of the 16-bit element types.
type (
	F16  = float16.Float16
	BF16 = dtype.BF16
)

// Element is the set of Go element types, one for each DType.
type Element = dtype.Element
