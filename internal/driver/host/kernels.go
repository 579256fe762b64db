package host

import (
	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/hostmem"
)

// Launch checks the kernel, captures it, and runs it in stream order.
func (s *stream) Launch(k *driver.Kernel) error {
	const op = "Stream.Launch"
	run, err := s.dev.kernel(k)
	if err != nil {
		return err
	}
	if run == nil {
		return s.usable(op)
	}
	return s.submit(op, &work{kind: doKernel, fn: run, bytes: kernelBytes(k)})
}

// kernelBytes is how much memory a kernel goes through.
func kernelBytes(k *driver.Kernel) int64 {
	v := &k.Out
	if k.Op == driver.KernelSum {
		v = &k.A
	}
	n := v.DType.Size()
	for _, x := range v.Shape {
		if x > 0 && n > smallBytes/x {
			return smallBytes + 1
		}
		n *= x
	}
	return n
}

// kernel prepares a launch; nil when there is nothing to do.
func (d *device) kernel(k *driver.Kernel) (func(), error) {
	_, empty, err := driver.CheckKernel("Stream.Launch", d.name, k)
	if err != nil || empty {
		return nil, err
	}
	if k.Op == driver.KernelCopy {
		return copyKernel(k), nil
	}
	return arithmeticKernel(k), nil
}

// arithmeticKernel picks the loops for the element type.
func arithmeticKernel(k *driver.Kernel) func() {
	if k.Op == driver.KernelSum { // a long sum in the elements' own type stands still once it is large
		switch k.Out.DType {
		case dtype.Float32:
			return arithmetic(k, wide{}, 0, 0)
		case dtype.Complex64:
			return arithmetic(k, wideComplex{}, 0, 0)
		case dtype.Float16:
			return arithmetic(k, wideHalves{}, 0, 0)
		case dtype.BFloat16:
			return arithmetic(k, wideBrains{}, 0, 0)
		}
	}
	switch k.Out.DType {
	case dtype.Float32:
		return arithmetic(k, exact[float32]{}, float32(real(k.Alpha)), float32(real(k.Beta)))
	case dtype.Float64:
		return arithmetic(k, exact[float64]{}, real(k.Alpha), real(k.Beta))
	case dtype.Int32:
		return arithmetic(k, exact[int32]{}, int32(int64(real(k.Alpha))), int32(int64(real(k.Beta))))
	case dtype.Int64:
		return arithmetic(k, exact[int64]{}, int64(real(k.Alpha)), int64(real(k.Beta)))
	case dtype.Complex64:
		return arithmetic(k, complexes[complex64]{}, complex64(k.Alpha), complex64(k.Beta))
	case dtype.Complex128:
		return arithmetic(k, complexes[complex128]{}, k.Alpha, k.Beta)
	case dtype.Float16:
		return arithmetic(k, halves{}, float32(real(k.Alpha)), float32(real(k.Beta)))
	}
	return arithmetic(k, brains{}, float32(real(k.Alpha)), float32(real(k.Beta)))
}

// number is what arithmetic is done in.
type number interface {
	~float32 | ~float64 | ~int32 | ~int64 | ~complex64 | ~complex128
}

// storage says how elements S are held and computed with as N.
type storage[S any, N number] interface {
	load(S, bool) N // conjugated if asked
	store(N) S
}

func arithmetic[S any, N number, C storage[S, N]](k *driver.Kernel, c C, alpha, beta N) func() {
	conjA, conjB := k.ConjA, k.ConjB
	switch k.Op {
	case driver.KernelFill:
		l := newLoop(k.Out.Shape, k.Out)
		value := c.store(alpha)
		return func() {
			l.run(func(r *row) {
				out := elements[S](r.ptr[0])
				for range r.n {
					*out.at() = value
					out.move(r.step[0])
				}
			})
		}
	case driver.KernelMul:
		l := newLoop(k.Out.Shape, k.Out, k.A, k.B)
		return func() {
			l.run(func(r *row) {
				out, a, b := elements[S](r.ptr[0]), elements[S](r.ptr[1]), elements[S](r.ptr[2])
				for range r.n {
					*out.at() = c.store(c.load(*a.at(), conjA) * c.load(*b.at(), conjB))
					out.move(r.step[0])
					a.move(r.step[1])
					b.move(r.step[2])
				}
			})
		}
	case driver.KernelAxpby:
		l := newLoop(k.Out.Shape, k.Out, k.A)
		var zero N
		return func() {
			l.run(func(r *row) {
				out, a := elements[S](r.ptr[0]), elements[S](r.ptr[1])
				for range r.n {
					v := alpha * c.load(*a.at(), conjA)
					if beta != zero {
						v += beta * c.load(*out.at(), false)
					}
					*out.at() = c.store(v)
					out.move(r.step[0])
					a.move(r.step[1])
				}
			})
		}
	}
	rank := len(k.Out.Shape)
	outer := newLoop(k.Out.Shape, k.Out, driver.View{Ptr: k.A.Ptr, DType: k.A.DType, Shape: k.Out.Shape, Strides: k.A.Strides[:rank]})
	tail := driver.View{Ptr: 0, DType: k.A.DType, Shape: k.A.Shape[rank:], Strides: k.A.Strides[rank:]}
	inner := newLoop(tail.Shape, tail)
	return func() {
		outer.run(func(r *row) {
			out, at := elements[S](r.ptr[0]), r.ptr[1]
			for range r.n {
				var sum N
				inner.runAt(at, func(q *row) {
					a := elements[S](q.ptr[0])
					for range q.n {
						sum += c.load(*a.at(), conjA)
						a.move(q.step[0])
					}
				})
				*out.at() = c.store(sum)
				out.move(r.step[0])
				at += uintptr(r.step[1])
			}
		})
	}
}

// cursor walks over elements by byte steps.
type cursor[S any] struct{ p uintptr }

func elements[S any](p uintptr) cursor[S] { return cursor[S]{p} }

func (c *cursor[S]) at() *S          { return (*S)(hostmem.Pointer(c.p)) }
func (c *cursor[S]) move(step int64) { c.p += uintptr(step) }
