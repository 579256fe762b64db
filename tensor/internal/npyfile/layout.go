package npyfile

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/weirgo/weir/dtype"
)

// maxDims is NumPy's own limit on the number of axes.
const maxDims = 64

// byteSize is the number of bytes of an array of this shape. As in NumPy, the
// extents other than zero must fit by themselves, so that the strides of an
// empty array fit too.
func byteSize(dt dtype.DType, shape []int64) (int64, error) {
	if len(shape) > maxDims {
		return 0, fmt.Errorf("shape has %d axes; expected at most %d", len(shape), maxDims)
	}
	size, empty := dt.Size(), false
	for axis, n := range shape {
		switch {
		case n < 0:
			return 0, fmt.Errorf("shape %s has a negative extent at axis %d; expected 0 or more", tuple(shape), axis)
		case n == 0:
			empty = true
		case size > math.MaxInt64/n:
			return 0, fmt.Errorf("shape %s of %v overflows; expected at most %d bytes", tuple(shape), dt, int64(math.MaxInt64))
		default:
			size *= n
		}
	}
	if empty {
		return 0, nil
	}
	return size, nil
}

// oneOrder says whether C and Fortran order lay this shape out alike.
func oneOrder(shape []int64) bool {
	long := 0
	for _, n := range shape {
		if n == 0 {
			return true
		}
		if n > 1 {
			long++
		}
	}
	return long <= 1
}

// tuple spells a shape as Python does: (), (3,), (2, 3).
func tuple(shape []int64) string {
	if len(shape) == 1 {
		return "(" + strconv.FormatInt(shape[0], 10) + ",)"
	}
	parts := make([]string, len(shape))
	for i, n := range shape {
		parts[i] = strconv.FormatInt(n, 10)
	}
	return "(" + strings.Join(parts, ", ") + ")"
}
