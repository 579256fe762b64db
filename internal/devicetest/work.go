package devicetest

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/provider/blas"
	"github.com/weirgo/weir/stream"
)

// operate submits work to s in one access scope of a written buffer, nil for
// none, and read ones. It is given their addresses, the written one's first.
func operate(s stream.Stream, write *buffer.Buffer, read []*buffer.Buffer, work func(d driver.Stream, at []driver.Ptr) error) error {
	acc := buffer.BeginCopy(s)
	var at []driver.Ptr
	if write != nil {
		at = append(at, acc.Write(write))
	}
	for _, b := range read {
		at = append(at, acc.Read(b))
	}
	err := acc.Err()
	if err == nil {
		var d driver.Stream
		if d, err = s.Submit(); err == nil {
			err = work(d, at)
		}
	}
	if eerr := acc.End(); err == nil {
		err = eerr
	}
	return err
}

// line is a contiguous view of n numbers.
func line(p driver.Ptr, n int64) driver.View {
	return driver.View{Ptr: p, DType: dtype.Int64, Shape: []int64{n}, Strides: []int64{1}}
}

// most is how many numbers of a large buffer are looked at and worked on: its
// first.
const most = 4096

// extent is how many numbers of b count.
func extent(b *buffer.Buffer) int64 { return min(b.Bytes()/8, most) }

// fill submits: every number of b becomes value.
func fill(s stream.Stream, b *buffer.Buffer, value int64) error {
	return operate(s, b, nil, func(d driver.Stream, at []driver.Ptr) error {
		return d.Launch(&driver.Kernel{Op: driver.KernelFill, Out: line(at[0], extent(b)), Alpha: complex(float64(value), 0)})
	})
}

// move submits a copy of all bytes of from to the beginning of to.
func move(s stream.Stream, to, from *buffer.Buffer) error {
	return operate(s, to, []*buffer.Buffer{from}, func(d driver.Stream, at []driver.Ptr) error {
		there, here := to.Memory().Resources().Device(), from.Memory().Resources().Device()
		if there != here {
			return d.CopyPeer(at[0], there.Driver().Ordinal(), at[1], here.Driver().Ordinal(), from.Bytes())
		}
		return d.Copy(at[0], at[1], from.Bytes())
	})
}

// step submits: b = factor·b + plus, elementwise. Steps of different factors do
// not commute, so that their result tells their order.
func step(s stream.Stream, b, plus *buffer.Buffer, factor int64) error {
	return operate(s, b, []*buffer.Buffer{plus}, func(d driver.Stream, at []driver.Ptr) error {
		n := extent(b)
		return d.Launch(&driver.Kernel{Op: driver.KernelAxpby, Out: line(at[0], n), A: line(at[1], n), Alpha: 1, Beta: complex(float64(factor), 0)})
	})
}

// look submits a read of b that does nothing but keep it in use.
func look(s stream.Stream, b *buffer.Buffer) error {
	return operate(s, nil, []*buffer.Buffer{b}, func(driver.Stream, []driver.Ptr) error { return nil })
}

// upload copies a slice to b.
func upload(s stream.Stream, b *buffer.Buffer, from []byte) error {
	return operate(s, b, nil, func(d driver.Stream, at []driver.Ptr) error { return d.CopyIn(at[0], from) })
}

// download waits for b and copies its beginning to a slice.
func download(s stream.Stream, to []byte, b *buffer.Buffer) error {
	return operate(s, nil, []*buffer.Buffer{b}, func(d driver.Stream, at []driver.Ptr) error { return d.CopyOut(to, at[0]) })
}

// numbers waits for b and answers what it holds.
func numbers(s stream.Stream, b *buffer.Buffer) ([]int64, error) {
	bytes := make([]byte, 8*extent(b))
	if err := download(s, bytes, b); err != nil {
		return nil, err
	}
	all := make([]int64, len(bytes)/8)
	for i := range all {
		all[i] = int64(binary.NativeEndian.Uint64(bytes[8*i:]))
	}
	return all, nil
}

// holds answers an error unless every number of b is value.
func holds(s stream.Stream, b *buffer.Buffer, value int64) error {
	all, err := numbers(s, b)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(all, func(x int64) bool { return x != value }); i >= 0 {
		return fmt.Errorf("number %d of %d is %d; expected %d", i, len(all), all[i], value)
	}
	return nil
}

func (w *world) fill(s stream.Stream, b *buffer.Buffer, value int64) {
	w.t.Helper()
	w.within("submitting a fill", func() error { return fill(s, b, value) })
}

func (w *world) move(s stream.Stream, to, from *buffer.Buffer) {
	w.t.Helper()
	w.within("submitting a copy", func() error { return move(s, to, from) })
}

func (w *world) step(s stream.Stream, b, plus *buffer.Buffer, factor int64) {
	w.t.Helper()
	w.within("submitting a step", func() error { return step(s, b, plus, factor) })
}

func (w *world) look(s stream.Stream, b *buffer.Buffer) {
	w.t.Helper()
	w.within("submitting a read", func() error { return look(s, b) })
}

// expect waits, on s, for b and checks that every number of it is value.
func (w *world) expect(what string, s stream.Stream, b *buffer.Buffer, value int64) {
	w.t.Helper()
	if err := w.start(what, func() error { return holds(s, b, value) }).join(); err != nil {
		w.t.Errorf("%s: %v", what, err)
	}
}

// at is where a live buffer lies.
func (w *world) at(s stream.Stream, b *buffer.Buffer) driver.Ptr {
	w.t.Helper()
	acc := buffer.BeginCopy(s)
	p := acc.Read(b)
	w.ok(acc.End())
	return p
}

// matrix makes an n×n matrix of float64, column-major.
func (w *world) matrix(s stream.Stream, values []float64) *buffer.Buffer {
	w.t.Helper()
	b := w.bytes(int64(8 * len(values)))
	w.within("uploading a matrix", func() error { return upload(s, b, floats(values)) })
	return b
}

func floats(values []float64) []byte {
	bytes := make([]byte, 8*len(values))
	for i, v := range values {
		binary.NativeEndian.PutUint64(bytes[8*i:], math.Float64bits(v))
	}
	return bytes
}

// values waits for a matrix.
func (w *world) values(s stream.Stream, b *buffer.Buffer) []float64 {
	w.t.Helper()
	var bits []int64
	w.within("reading a matrix", func() (err error) {
		bits, err = numbers(s, b)
		return err
	})
	all := make([]float64, len(bits))
	for i, x := range bits {
		all[i] = math.Float64frombits(uint64(x))
	}
	return all
}

// product submits c = a·b + beta·c of n×n matrices of float64 with l.
func product(l *blas.Lease, n int64, c, a, b *buffer.Buffer, beta float64) error {
	acc := buffer.Begin(l.Stream())
	p := blas.Product{DType: dtype.Float64, M: n, N: n, K: n, Alpha: 1, Beta: complex(beta, 0),
		A: acc.Read(a), B: acc.Read(b), C: acc.Write(c), LDA: n, LDB: n, LDC: n, Batch: 1}
	err := acc.Err()
	if err == nil {
		err = blas.Gemm(l, &p)
	}
	if eerr := acc.End(); err == nil {
		err = eerr
	}
	return err
}

// multiplied is a·b + beta·c by the definition, column-major.
func multiplied(n int, a, b, c []float64, beta float64) []float64 {
	out := make([]float64, n*n)
	for i := range n {
		for j := range n {
			for k := range n {
				out[i+j*n] += a[i+k*n] * b[k+j*n]
			}
			if beta != 0 {
				out[i+j*n] += beta * c[i+j*n]
			}
		}
	}
	return out
}
