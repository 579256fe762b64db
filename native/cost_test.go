package native_test

import (
	"os"
	goruntime "runtime"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/weirgo/weir/native"
	"github.com/weirgo/weir/tensor"
)

// resident is how many bytes of the process are in memory; 0 where nobody tells.
func resident() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	pages, _ := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	return pages * int64(os.Getpagesize())
}

// TestMemoryStaysFlatOverManyCallsAndJobs: a million of each where WEIR_TEST_MANY=1
// asks for them.
func TestMemoryStaysFlatOverManyCallsAndJobs(t *testing.T) {
	many := 20_000
	if os.Getenv("WEIR_TEST_MANY") == "1" {
		many = 1_000_000
	}
	ctx := start(t)
	lib, s := openTest(t, ctx), newSession(t, ctx)
	a := must(tensor.Zeros(ctx, tensor.Int32, 8))
	asJob := job(t, lib, "rt_add_job", native.Handle, native.ViewInOut, native.Int32)
	into := job(t, lib, "rt_deposit_job", native.Handle, native.Int32, native.Int64, native.IntoDeposit)
	run := func(n int) {
		for i := range n {
			if err := asJob.Run(ctx, s, "add", a, 1); err != nil {
				t.Fatal(err)
			}
			if err := s.Do(ctx, func(*native.Scope) error { return nil }, native.In(a)); err != nil {
				t.Fatal(err)
			}
			if i%10 > 0 {
				continue
			}
			d := must(s.NewDeposit())
			if err := into.Run(ctx, s, "deposit", 1, 10, d); err != nil {
				t.Fatal(err)
			}
			for _, x := range must(d.Arrays(ctx)) {
				if err := x.Free(); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	heap := func() int64 {
		var m goruntime.MemStats
		goruntime.GC()
		goruntime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	run(many / 10)
	heapBefore, before := heap(), resident()
	run(many)
	heapAfter, after := heap(), resident()
	t.Logf("after %d more: heap %d to %d bytes, resident %d to %d", many, heapBefore, heapAfter, before, after)
	if grown := heapAfter - heapBefore; grown > 1<<20 {
		t.Errorf("the heap grew by %d bytes over %d jobs", grown, many)
	}
	if grown := after - before; !underRace && grown > 16<<20 {
		t.Errorf("the process grew by %d bytes over %d jobs", grown, many)
	}
}

// TestCallsAllocateNoMoreThanTheirCeilings, whatever the arrays' sizes.
func TestCallsAllocateNoMoreThanTheirCeilings(t *testing.T) {
	if underRace {
		t.Skip("the race detector allocates")
	}
	ctx := start(t)
	lib, s := openTest(t, ctx), newSession(t, ctx)
	add := job(t, lib, "rt_add_job", native.Handle, native.ViewInOut, native.Int32)
	for _, size := range []int{1, 1000} {
		a := must(tensor.Zeros(ctx, tensor.Int32, size))
		for _, c := range []struct {
			name string
			most float64
			call func() error
		}{
			{"a scope of one view", 2, func() error { return s.Do(ctx, func(*native.Scope) error { return nil }, native.InOut(a)) }},
			{"a scope of four views", 2, func() error {
				return s.Do(ctx, func(*native.Scope) error { return nil }, native.In(a), native.In(a), native.In(a), native.In(a))
			}},
			{"a job", 8, func() error { return add.Run(ctx, s, "add", a, 1) }},
		} {
			if n := testing.AllocsPerRun(200, func() {
				if err := c.call(); err != nil {
					t.Fatal(err)
				}
			}); n > c.most {
				t.Errorf("%s of %d elements: %v allocations; expected %v at most", c.name, size, n, c.most)
			}
		}
	}
}

func BenchmarkCheckedCall(b *testing.B) {
	ctx := start(b)
	lib := openTest(b, ctx)
	var fail func(status, kind int32) int32
	if err := lib.Func("rt", "rt_fail", &fail); err != nil {
		b.Fatal(err)
	}
	b.Run("bare", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			fail(0, 0)
		}
	})
	b.Run("checked", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := lib.Check("call", func() int32 { return fail(0, 0) }); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkScope(b *testing.B) {
	ctx := start(b)
	openTest(b, ctx)
	s := newSession(b, ctx)
	var all []native.Operand
	for range 8 {
		all = append(all, native.InOut(must(tensor.Zeros(ctx, tensor.Float32, 16, 16))))
	}
	for _, views := range []int{0, 1, 2, 4, 8} {
		b.Run(strconv.Itoa(views)+" views", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := s.Do(ctx, func(*native.Scope) error { return nil }, all[:views]...); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkJob(b *testing.B) {
	ctx := start(b)
	lib, s := openTest(b, ctx), newSession(b, ctx)
	a := must(tensor.Zeros(ctx, tensor.Int32, 16))
	var add func(unsafe.Pointer, *native.View, int32) int32
	if err := lib.Func("rt", "rt_add", &add); err != nil {
		b.Fatal(err)
	}
	b.Run("call", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := s.Do(ctx, func(sc *native.Scope) error {
				return lib.Check("add", func() int32 { return add(sc.Handle(), sc.View(0), 1) })
			}, native.InOut(a)); err != nil {
				b.Fatal(err)
			}
		}
	})
	asJob := job(b, lib, "rt_add_job", native.Handle, native.ViewInOut, native.Int32)
	b.Run("job", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := asJob.Run(ctx, s, "add", a, 1); err != nil {
				b.Fatal(err)
			}
		}
	})
}
