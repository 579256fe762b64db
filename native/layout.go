package native

import (
	"fmt"
	"strings"

	"github.com/weirgo/weir/dtype"
)

// What the headers of csrc/native/include/raftrkt lay out. Addresses are numbers:
// what they address is no memory of Go's.

const (
	maxRank    = 8
	maxRegions = 8

	memoryHost   = 0
	memoryDevice = 2

	rankAbsent = -1

	messageBytes = 4096
	abiVersion   = 1

	depositOpen    = 0
	depositFilling = 1
	depositFilled  = 2
	depositClosed  = 3
)

// View is the rr_view of an array: what native code sees of it. It is bound in the
// scope that made it, and cleared at the scope's end: the native side then refuses
// it. A nil *View stands for no array.
type View struct {
	data    uintptr
	dtype   int32
	memory  int32
	device  int32
	rank    int32
	shape   [maxRank]int64
	strides [maxRank]int64
}

// clear leaves element type, rank and layout, so that it can be said what was there.
func (v *View) clear() { v.data, v.memory, v.device = 0, -1, -1 }

// String describes the view: "float32[300×2] strides (2, 1)", and "cleared" of one
// that is not bound.
func (v *View) String() string {
	if v == nil || v.rank == rankAbsent {
		return "no array"
	}
	var shape, strides []string
	for i := range v.rank {
		shape = append(shape, fmt.Sprint(v.shape[i]))
		strides = append(strides, fmt.Sprint(v.strides[i]))
	}
	s := fmt.Sprintf("%v[%s] strides (%s)", dtype.DType(v.dtype), strings.Join(shape, "×"), strings.Join(strides, ", "))
	if v.memory < 0 {
		s += ", cleared"
	}
	return s
}

// known says whether the interface has the element type. Its codes are dtype's numbers.
func known(d dtype.DType) bool { return d <= dtype.Int64 }

// ABITag is the rr_abi_tag: what a library was compiled against. Tags are compared,
// in the order of the fields, when a library is opened.
type ABITag struct {
	Version       int32
	RAFT          [3]int32 // major, minor, patch; so the next two
	RMM           [3]int32
	CCCL          [3]int32
	CUDARuntime   int32 // as CUDART_VERSION: 12090; 0 on the host flavour
	ResourceTypes int32
	HandleSize    int64
}
