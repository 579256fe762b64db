package native

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"unsafe"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/tensor"
)

// Param is the type of one parameter of a job's entry point, as it is in C.
type Param uint8

const (
	Handle      Param = iota // void *handle; Run takes no argument for it
	ViewIn                   // const rr_view *, of an array that is read: a *tensor.Array or nil
	ViewOut                  // of one that is overwritten
	ViewInOut                // of one that is changed in place
	IntoDeposit              // rr_deposit *: a *Deposit
	Int32                    // int32_t: an integer
	Int64                    // int64_t
	Uint64                   // uint64_t
	Float32                  // float: a floating-point number, or an integer that it holds exactly
	Float64                  // double
	OutInt32                 // int32_t *, an output: a *int32
	OutInt64                 // int64_t *: a *int64
	OutUint64                // uint64_t *: a *uint64
	OutFloat32               // float *: a *float32
	OutFloat64               // double *: a *float64
	paramCount
)

func (p Param) String() string {
	if p >= paramCount {
		return fmt.Sprintf("param(%d)", uint8(p))
	}
	return [...]string{"handle", "view", "view", "view", "deposit", "int32", "int64", "uint64", "float32", "float64",
		"*int32", "*int64", "*uint64", "*float32", "*float64"}[p]
}

// size is what a parameter takes in a block, and its alignment there.
func (p Param) size() (bytes, align uintptr) {
	switch p {
	case ViewIn, ViewOut, ViewInOut:
		return unsafe.Sizeof(View{}), 8
	case Int32, Float32, OutInt32, OutFloat32:
		return 4, 4
	}
	return 8, 8
}

// layout is where each parameter lies, and the size of the block.
func layout(params []Param) (offsets []uintptr, bytes uintptr) {
	for _, p := range params {
		size, align := p.size()
		bytes = (bytes + align - 1) &^ (align - 1)
		offsets = append(offsets, bytes)
		bytes += size
	}
	return offsets, (bytes + 7) &^ 7
}

// put writes a number, an output's zero or a view's description to its place; an
// argument that the type refuses is an argument error, a view that is none of kind
// logic.
func (p Param) put(who string, at unsafe.Pointer, index int, arg any) error {
	switch p {
	case ViewIn, ViewOut, ViewInOut:
		a, ok := arg.(*tensor.Array)
		if !ok && arg != nil {
			return refuse(who, nil, "expected a device array or nil for a view, given %s", given(arg))
		}
		return (*View)(at).describe(who, a)
	case IntoDeposit:
		d, ok := arg.(*Deposit)
		if !ok {
			return refuse(who, nil, "expected a deposit for a deposit parameter, given %s", given(arg))
		}
		return d.bindable(who)
	case Int32:
		n, ok := integer(arg)
		if ok = ok && n >= math.MinInt32 && n <= math.MaxInt32; ok {
			*(*int32)(at) = int32(n)
			return nil
		}
	case Int64:
		if n, ok := integer(arg); ok {
			*(*int64)(at) = n
			return nil
		}
	case Uint64:
		if n, ok := natural(arg); ok {
			*(*uint64)(at) = n
			return nil
		}
	case Float32:
		if x, ok := real(arg); ok && holds(arg, x, float64(float32(x))) {
			*(*float32)(at) = float32(x)
			return nil
		}
	case Float64:
		if x, ok := real(arg); ok {
			*(*float64)(at) = x
			return nil
		}
	default:
		if p.take(nil, arg) {
			return nil
		}
		return weir.Argf(who, "argument %d: expected a %v for an output, given %s", index, p, given(arg))
	}
	return weir.Argf(who, "argument %d: expected a number that %v holds, given %s", index, p, given(arg))
}

// take copies an output from its place to where the caller wants it; false if that
// is not the type's. With nil it only looks.
func (p Param) take(at unsafe.Pointer, arg any) bool {
	switch p {
	case OutInt32:
		return output[int32](at, arg)
	case OutInt64:
		return output[int64](at, arg)
	case OutUint64:
		return output[uint64](at, arg)
	case OutFloat32:
		return output[float32](at, arg)
	case OutFloat64:
		return output[float64](at, arg)
	}
	return false
}

func output[T any](at unsafe.Pointer, arg any) bool {
	to, ok := arg.(*T)
	if !ok || to == nil {
		return false
	}
	if at != nil {
		*to = *(*T)(at)
	}
	return true
}

// integer is an argument of any integer type, if an int64 holds it.
func integer(arg any) (int64, bool) {
	switch n := arg.(type) {
	case int:
		return int64(n), true
	case int32:
		return int64(n), true
	case int64:
		return n, true
	}
	v := reflect.ValueOf(arg)
	switch {
	case v.CanInt():
		return v.Int(), true
	case v.CanUint():
		return int64(v.Uint()), v.Uint() <= math.MaxInt64
	}
	return 0, false
}

// natural is an argument of any integer type, if a uint64 holds it.
func natural(arg any) (uint64, bool) {
	if v := reflect.ValueOf(arg); v.CanUint() {
		return v.Uint(), true
	}
	n, ok := integer(arg)
	return uint64(n), ok && n >= 0
}

// real is an argument of a floating-point type, or an integer that a float64 holds
// exactly.
func real(arg any) (float64, bool) {
	if x, ok := arg.(float64); ok {
		return x, true
	}
	if v := reflect.ValueOf(arg); v.CanFloat() {
		return v.Float(), true
	}
	if n, ok := natural(arg); ok {
		x := float64(n)
		return x, x < 1<<64 && uint64(x) == n
	}
	n, ok := integer(arg)
	x := float64(n)
	return x, ok && int64(x) == n // negative
}

// holds says whether rounded stands for x: an integer stays what it is, and a finite
// number finite.
func holds(arg any, x, rounded float64) bool {
	if !reflect.ValueOf(arg).CanFloat() {
		return rounded == x
	}
	return math.IsInf(x, 0) || !math.IsInf(rounded, 0)
}

// given describes an argument: a number or a text as it is, else its type.
func given(arg any) string {
	switch v := reflect.ValueOf(arg); {
	case arg == nil, v.Kind() == reflect.Pointer && v.IsNil():
		return "nil"
	case v.Kind() == reflect.String:
		return strconv.Quote(v.String())
	case v.CanInt(), v.CanUint(), v.CanFloat(), v.Kind() == reflect.Bool:
		return fmt.Sprint(arg)
	}
	return fmt.Sprintf("a %T", arg)
}
