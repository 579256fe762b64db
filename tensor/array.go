package tensor

import (
	"fmt"
	"sync/atomic"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/runtime"
)

// Array is an immutable view of device memory: element type, shape, strides and
// an offset into a buffer that other arrays may share. Arrays are made by
// constructors and operations, and used by pointer.
//
// Nil and the zero Array are no arrays. What answers an error refuses them with
// an ErrArgument; methods that answer none have zero values for them, and T, Conj
// and H answer them as they are, for the next operation to refuse.
type Array struct {
	own    buffer.Buffer // the buffer, if this array's operation made it
	root   *Array        // else the array that has it
	offset int64         // of element 0, in elements
	layout
	dtype DType
	conj  bool // what is read is the conjugate of what is stored
	kept  bool // its memory is a graph's, which gives it back
	scope atomic.Uint64
}

// none says whether a is nil or the zero Array.
func (a *Array) none() bool { return a == nil || a.root == nil && a.own.Memory() == nil }

// DType is the element type.
func (a *Array) DType() DType {
	if a.none() {
		return DType(0)
	}
	return a.dtype
}

// Rank is the number of axes.
func (a *Array) Rank() int {
	if a.none() {
		return 0
	}
	return a.rank
}

// Shape answers the extent of each axis, axis 0 first.
func (a *Array) Shape() []int {
	if a.none() {
		return nil
	}
	shape := make([]int, a.rank)
	for i, n := range a.shape() {
		shape[i] = int(n)
	}
	return shape
}

// Strides answers the distance of neighbours along each axis, in elements.
func (a *Array) Strides() []int {
	if a.none() {
		return nil
	}
	strides := make([]int, a.rank)
	for i, n := range a.strides() {
		strides[i] = int(n)
	}
	return strides
}

// Size is the number of elements.
func (a *Array) Size() int {
	if a.none() {
		return 0
	}
	return int(a.size())
}

// Bytes is the size of the elements, which is that of the memory only if the
// array is contiguous and shares with none.
func (a *Array) Bytes() int64 {
	if a.none() {
		return 0
	}
	return a.size() * a.dtype.Size()
}

// Device is where the array lives.
func (a *Array) Device() runtime.Device {
	if a.none() {
		return runtime.Device{}
	}
	return a.resources().Device()
}

// Buffer is the buffer that the array views, for operations of one's own: open
// it in a buffer.Access and add Offset elements to the address.
func (a *Array) Buffer() *buffer.Buffer {
	if a.none() {
		return nil
	}
	if a.root != nil {
		return &a.root.own
	}
	return &a.own
}

// Offset is the place of element 0 in the buffer, in elements.
func (a *Array) Offset() int {
	if a.none() {
		return 0
	}
	return int(a.offset)
}

// IsConj says whether elements read as the conjugates of what is stored.
func (a *Array) IsConj() bool { return !a.none() && a.conj }

// IsContiguous says whether the elements lie one after another in row-major
// order.
func (a *Array) IsContiguous() bool { return !a.none() && a.isRowMajor() }

// Free gives the memory back when the submitted work that uses it is done,
// without waiting. Every array that shares the memory answers ErrClosed
// afterwards. A second Free does nothing.
//
// Of a nil or zero Array it does nothing, nor of one that a graph of tensor/flow
// made: that gives it back itself.
func (a *Array) Free() error {
	if a.none() || a.kept || a.root != nil && a.root.kept {
		return nil
	}
	return a.Buffer().Free()
}

func (a *Array) memory() *buffer.Memory        { return a.Buffer().Memory() }
func (a *Array) resources() *runtime.Resources { return a.memory().Resources() }

// describe is "float32 2×3".
func (a *Array) describe() string { return fmt.Sprintf("%v %s", a.dtype, shapeString(a.shape())) }

// view is what kernels take: ptr is the address of the buffer.
func (a *Array) view(ptr driver.Ptr) driver.View {
	return driver.View{Ptr: ptr + driver.Ptr(a.offset*a.dtype.Size()), DType: a.dtype, Shape: a.shape(), Strides: a.strides()}
}

// with is a new view of a's memory.
func (a *Array) with(l layout, offset int64) *Array {
	root := a
	if a.root != nil {
		root = a.root
	}
	return &Array{root: root, offset: offset, layout: l, dtype: a.dtype, conj: a.conj}
}

// overlaps says whether a and b may share an element's memory.
func (a *Array) overlaps(b *Array) bool {
	if a.Buffer() != b.Buffer() {
		return false
	}
	lowA, highA := a.extent()
	lowB, highB := b.extent()
	lowA, highA = (a.offset+lowA)*a.dtype.Size(), (a.offset+highA+1)*a.dtype.Size()
	lowB, highB = (b.offset+lowB)*b.dtype.Size(), (b.offset+highB+1)*b.dtype.Size()
	return lowA < highB && lowB < highA
}

// names are those of an operation's parameters, for messages.
var (
	namesA   = []string{"a"}
	namesAB  = []string{"a", "b"}
	namesABC = []string{"a", "b", "c"}
	namesDst = []string{"dst", "src"}
)

// usable refuses what no constructor made, and what was freed: an operation that
// has no elements to touch opens no access, which would refuse that too.
func (a *Array) usable(op, name string) error {
	if a.none() {
		return weir.Argf(op, "%s is %s; expected an array that a constructor or an operation made", name, map[bool]string{true: "nil", false: "the zero Array"}[a == nil])
	}
	if !a.Buffer().Live() {
		return &weir.Error{Op: op, Device: a.Device().Name(), Kind: weir.KindLogic, Err: weir.ErrClosed,
			Message: name + " was freed; expected a live array"}
	}
	return nil
}

// sameDevice checks that all arrays exist and live on one device.
func sameDevice(op string, names []string, arrays ...*Array) error {
	for i, a := range arrays {
		if err := a.usable(op, names[i]); err != nil {
			return err
		}
		if a.memory() == arrays[0].memory() {
			continue
		}
		return apart(op, names[0], arrays[0], names[i], a)
	}
	return nil
}

// apart says that a and b lie in different memories.
func apart(op, nameA string, a *Array, nameB string, b *Array) error {
	if a.Device().Name() == b.Device().Name() {
		return &weir.Error{Op: op, Kind: weir.KindLogic, Err: weir.ErrClosed,
			Message: fmt.Sprintf("%s and %s belong to different runtimes; expected arrays of the one that runs", nameA, nameB)}
	}
	return weir.Argf(op, "%s is on %s and %s on %s; copy one to the other's device with tensor.To", nameA, a.Device(), nameB, b.Device())
}

func sameDType(op string, names []string, arrays ...*Array) error {
	for i, a := range arrays {
		if a.dtype != arrays[0].dtype {
			return weir.Argf(op, "%s is %v and %s is %v; convert one with tensor.AsType",
				names[0], arrays[0].dtype, names[i], a.dtype)
		}
	}
	return nil
}
