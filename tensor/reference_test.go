package tensor

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/x448/float16"
)

// values answers an array's elements, widened.
func values(ctx context.Context, a *Array) ([]complex128, error) {
	switch a.dtype {
	case Float32:
		return widen(ctx, a, func(x float32) complex128 { return complex(float64(x), 0) })
	case Float64:
		return widen(ctx, a, func(x float64) complex128 { return complex(x, 0) })
	case Int32:
		return widen(ctx, a, func(x int32) complex128 { return complex(float64(x), 0) })
	case Int64:
		return widen(ctx, a, func(x int64) complex128 { return complex(float64(x), 0) })
	case Complex64:
		return widen(ctx, a, func(x complex64) complex128 { return complex128(x) })
	case Complex128:
		return widen(ctx, a, func(x complex128) complex128 { return x })
	case Float16:
		return widen(ctx, a, func(x float16.Float16) complex128 { return complex(float64(x.Float32()), 0) })
	}
	return widen(ctx, a, func(x BF16) complex128 { return complex(float64(x.Float32()), 0) })
}

func widen[T Element](ctx context.Context, a *Array, f func(T) complex128) ([]complex128, error) {
	data, err := Data[T](ctx, a)
	out := make([]complex128, len(data))
	for i, x := range data {
		out[i] = f(x)
	}
	return out, err
}

// random makes an array of small random numbers: integers for integer types,
// else within ±1.
func random(ctx context.Context, rng *rand.Rand, dt DType, shape ...int) (*Array, error) {
	n := 1
	for _, x := range shape {
		n *= x
	}
	data := make([]complex128, n)
	for i := range data {
		if dt.IsInteger() {
			data[i] = complex(float64(rng.IntN(19)-9), 0)
		} else {
			data[i] = complex(2*rng.Float64()-1, 2*rng.Float64()-1)
		}
	}
	wide, err := From(ctx, data, shape...)
	if len(shape) == 0 {
		wide, err = Scalar(ctx, data[0])
	}
	if err != nil || dt == Complex128 {
		return wide, err
	}
	defer wide.Free()
	return AsType(ctx, wide, dt)
}

// view makes a random view with the shape: permuted, stepped, reversed,
// stretched, conjugated.
func view(ctx context.Context, rng *rand.Rand, dt DType, shape ...int) (*Array, error) {
	rank := len(shape)
	order := rng.Perm(rank)
	outer := make([]int, rank)
	index := make([]Index, rank)
	for i, k := range order {
		n := shape[k]
		outer[i] = n
		switch rng.IntN(6) {
		case 0:
			index[i] = Reverse()
		case 1:
			outer[i] = n + 3
			index[i] = Span(2, n+2)
		case 2:
			outer[i] = max(2*n-1, 0)
			index[i] = Steps(0, End, 2)
		case 3:
			if n > 1 {
				outer[i] = 1
			}
		}
	}
	a, err := random(ctx, rng, dt, outer...)
	if err != nil {
		return nil, err
	}
	if a, err = a.Slice(index...); err != nil {
		return nil, err
	}
	want := make([]int, rank)
	back := make([]int, rank)
	for i, k := range order {
		want[i] = shape[k]
		back[k] = i
	}
	if a, err = a.Broadcast(want...); err != nil {
		return nil, err
	}
	if a, err = a.Permute(back...); err != nil {
		return nil, err
	}
	if rng.IntN(2) == 0 {
		a = a.Conj()
	}
	return a, nil
}

// epsilon is the unit roundoff of what dt accumulates in, and that of storing a
// result in dt.
func epsilon(dt DType) (accumulate, store float64) {
	switch dt {
	case Float64, Complex128:
		return 0x1p-52, 0x1p-52
	case Float32, Complex64:
		return 0x1p-23, 0x1p-23
	case Float16:
		return 0x1p-23, 0x1p-10
	case BFloat16:
		return 0x1p-23, 0x1p-7
	}
	return 0, 0
}

// compare checks got against want, where absolute is the sum of the absolute
// values that went into each element and terms how many there were.
func compare(dt DType, terms int, got, want []complex128, absolute []float64) error {
	if len(got) != len(want) {
		return fmt.Errorf("%d elements; want %d", len(got), len(want))
	}
	accumulate, store := epsilon(dt)
	for i := range want {
		d := got[i] - want[i]
		bound := 4*accumulate*float64(terms+1)*absolute[i] + store*absolute[i]
		if !(math.Hypot(real(d), imag(d)) <= bound) {
			return fmt.Errorf("element %d is %v; want %v within %.3g", i, got[i], want[i], bound)
		}
	}
	return nil
}
