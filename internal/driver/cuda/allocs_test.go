//go:build cuda

package cuda_test

import (
	"errors"
	"testing"

	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/internal/driver"
)

// hotPath is what an operation uses.
type hotPath struct {
	device       driver.Device
	stream, next driver.Stream
	event        driver.Event
	blas         driver.BLAS
	memory       driver.Ptr
	gemm         driver.Gemm
	groups       []driver.GemmGroup
	kernel       driver.Kernel
}

func newHotPath(t testing.TB) *hotPath {
	d := must(gpus(t).Open(0))
	b := &hotPath{device: d, stream: must(d.NewStream(0)), next: must(d.NewStream(0)), event: must(d.NewEvent()), blas: must(d.NewBLAS())}
	const n = 64
	b.memory = must(d.Alloc(3 * 4 * n * n))
	at := func(i driver.Ptr) driver.Ptr { return b.memory + i*4*n*n }
	b.gemm = driver.Gemm{DType: dtype.Float32, M: n, N: n, K: n, Alpha: 1, A: at(0), B: at(1), C: at(2), LDA: n, LDB: n, LDC: n, Batch: 1}
	for _, m := range []int64{n, n / 2} {
		g := driver.GemmGroup{Gemm: b.gemm, As: []driver.Ptr{at(0), at(1)}, Bs: []driver.Ptr{at(0), at(1)}, Cs: []driver.Ptr{at(2), at(2)}}
		g.M = m
		b.groups = append(b.groups, g)
	}
	view := driver.View{Ptr: at(0), DType: dtype.Float32, Shape: []int64{n, n}, Strides: []int64{1, n}}
	out := view
	out.Ptr, out.Strides = at(1), []int64{n, 1}
	b.kernel = driver.Kernel{Op: driver.KernelCopy, Out: out, A: view}
	t.Cleanup(func() {
		_, _ = b.blas.Destroy(), b.event.Destroy()
		_, _, _ = d.Free(b.memory), b.stream.Destroy(), b.next.Destroy()
	})
	return b
}

func (b *hotPath) calls() map[string]func() error {
	return map[string]func() error{
		"Record":          func() error { return b.stream.Record(b.event) },
		"Wait":            func() error { return b.next.Wait(b.event) },
		"Stream.Query":    func() error { _, err := b.stream.Query(); return err },
		"Event.Query":     func() error { _, err := b.event.Query(); return err },
		"Gemm":            func() error { return b.blas.Gemm(b.stream, &b.gemm) },
		"GemmGroups, one": func() error { return b.blas.GemmGroups(b.stream, b.groups[:1]) },
		"GemmGroups, two": func() error { return b.blas.GemmGroups(b.stream, b.groups) },
		"Gemm elsewhere": func() error {
			return errors.Join(b.blas.Gemm(b.next, &b.gemm), b.blas.Gemm(b.stream, &b.gemm))
		},
		"Launch":            func() error { return b.stream.Launch(&b.kernel) },
		"Copy":              func() error { return b.stream.Copy(b.memory, b.memory+1<<14, 1<<10) },
		"Zero":              func() error { return b.stream.Zero(b.memory, 1<<10) },
		"Synchronize":       b.stream.Synchronize,
		"Event.Synchronize": b.event.Synchronize,
	}
}

func TestTheHotPathAllocatesNothing(t *testing.T) {
	b := newHotPath(t)
	for name, call := range b.calls() {
		if n := testing.AllocsPerRun(100, func() {
			if err := call(); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}
