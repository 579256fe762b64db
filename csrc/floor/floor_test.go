//go:build cuda

package floor_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"unsafe"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/csrc/floor"
	"github.com/weirgo/weir/internal/driver/cuda"
	"github.com/weirgo/weir/internal/driver/cuda/cudatest"
)

// open opens GPU 0 for a test, which is skipped without one and must leave
// nothing.
func open(t *testing.T, streams int) *floor.GPU {
	t.Helper()
	if f := cuda.New(); f.Count() == 0 {
		if os.Getenv("WEIR_TEST_CUDA") == "1" {
			t.Fatal(f.Unavailable())
		}
		t.Skip(f.Unavailable())
	}
	g, err := floor.Open(0, streams)
	ok(t, err)
	t.Cleanup(func() {
		ok(t, errors.Join(g.Close(), g.Close()))
		for _, kind := range []string{"context", "stream", "event", "allocation", "host-allocation", "cublas"} {
			if n := cudatest.Live(kind); n != 0 {
				t.Errorf("%d of kind %s live at the end", n, kind)
			}
		}
		if misuse := cudatest.Misuse(); misuse != "" {
			t.Errorf("the driver was misused:\n%s", misuse)
		}
	})
	return g
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// memory answers bytes of device memory until the test ends.
func memory(t *testing.T, g *floor.GPU, bytes int) floor.Address {
	t.Helper()
	p, err := g.Alloc(int64(bytes))
	ok(t, err)
	t.Cleanup(func() { ok(t, g.Free(p)) })
	return p
}

func bytesOf[T any](s []T) []byte {
	var zero T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(zero)))
}

// upload answers a copy of s on the device.
func upload[T any](t *testing.T, g *floor.GPU, s []T) floor.Address {
	t.Helper()
	p := memory(t, g, len(bytesOf(s)))
	_, err := g.CopyIn(p, bytesOf(s))
	ok(t, err)
	return p
}

func download[T any](t *testing.T, g *floor.GPU, p floor.Address, n int) []T {
	t.Helper()
	s := make([]T, n)
	_, err := g.CopyOut(bytesOf(s), p)
	ok(t, err)
	return s
}

// whole answers n×n whole numbers from -1 to 1, whose products are exact.
func whole[T float32 | float64](seed uint64, n int) []T {
	random := rand.New(rand.NewPCG(seed, 1))
	m := make([]T, n*n)
	for i := range m {
		m[i] = T(random.IntN(3) - 1)
	}
	return m
}

// multiply is a·b of row-major n×n matrices.
func multiply[T float32 | float64](n int, a, b []T) []T {
	c := make([]T, n*n)
	for i := range n {
		for j := range n {
			for k := range n {
				c[i*n+j] += a[i*n+k] * b[k*n+j]
			}
		}
	}
	return c
}

func TestAChainIsOfProductsOfTheOneBefore(t *testing.T) {
	g := open(t, 3)
	for _, streams := range []int{1, 2, 3} {
		chain[float32](t, g, floor.Single, streams)
		chain[float64](t, g, floor.Double, streams)
		chain[float32](t, g, floor.TF32, streams)
	}
	for _, streams := range []int{0, 4} {
		if _, err := g.Chain(floor.Single, 1, 0, 0, [2]floor.Address{}, streams, 1); err == nil || err.Error() != fmt.Sprintf("floor.Chain: %d streams; expected 1 to 3", streams) {
			t.Errorf("%d streams: %v", streams, err)
		}
	}
}

func chain[T float32 | float64](t *testing.T, g *floor.GPU, k floor.Kind, streams int) {
	const n = 5
	x, b := whole[T](1, n), whole[T](2, n)
	atX, atB := upload(t, g, x), upload(t, g, b)
	turns := [2]floor.Address{upload(t, g, make([]T, n*n)), upload(t, g, make([]T, n*n))}
	want := x
	for count := 1; count <= 4; count++ {
		times, err := g.Chain(k, n, atX, atB, turns, streams, count)
		ok(t, err)
		want = multiply(n, want, b)
		if got := download[T](t, g, turns[(count-1)%2], n*n); !slices.Equal(got, want) {
			t.Errorf("kind %d, %d products on %d streams: %v; expected %v", k, count, streams, got, want)
		}
		if times.Submit <= 0 || times.Done < times.Submit || times.Device <= 0 {
			t.Errorf("kind %d, %d products: times %+v", k, count, times)
		}
	}
}

// TestTF32RoundsWhatItMultiplies: 1 + 2⁻¹² has more bits than TF32's eleven. A GPU
// may, and the simulator does.
func TestTF32RoundsWhatItMultiplies(t *testing.T) {
	g := open(t, 1)
	if !cudatest.Simulated() {
		t.Skip("the driver is no simulator")
	}
	const n = 1
	x, one := upload(t, g, []float32{1 + 0x1p-12}), upload(t, g, []float32{1})
	turn := upload(t, g, []float32{0})
	for k, want := range map[floor.Kind]float32{floor.Single: 1 + 0x1p-12, floor.TF32: 1} {
		_, err := g.Chain(k, n, x, one, [2]floor.Address{turn, turn}, 1, 1)
		ok(t, err)
		if got := download[float32](t, g, turn, 1); got[0] != want {
			t.Errorf("kind %d: %v; expected %v", k, got[0], want)
		}
	}
}

// TestProductsGoToStreamsAndResultsInTurn, and wait where two streams write one
// result and nowhere else.
func TestProductsGoToStreamsAndResultsInTurn(t *testing.T) {
	g := open(t, 4)
	const n = 6
	a, b := whole[float32](3, n), whole[float32](4, n)
	want := multiply(n, a, b)
	atA, atB := upload(t, g, a), upload(t, g, b)
	for name, c := range map[string]struct{ streams, results, count, burst, waits int }{
		"one stream, one result":       {1, 1, 8, 8, 0},
		"each waited for":              {4, 1, 8, 1, 0},
		"four streams, one result":     {4, 1, 8, 8, 7},
		"two bursts":                   {4, 1, 7, 4, 3 + 2},
		"four streams, four results":   {4, 4, 8, 8, 0},
		"four streams, two results":    {4, 2, 8, 8, 6},
		"more results than there fill": {4, 4, 2, 2, 0},
	} {
		results := make([]floor.Address, c.results)
		for i := range results {
			results[i] = upload(t, g, make([]float32, n*n))
		}
		waits, products := cudatest.Count("cuStreamWaitEvent"), cudatest.Count("cublasSgemm_v2")
		times, err := g.Products(floor.Single, n, atA, atB, results, c.streams, c.count, c.burst)
		ok(t, err)
		for i, p := range results[:min(c.results, c.count)] {
			if got := download[float32](t, g, p, n*n); !slices.Equal(got, want) {
				t.Errorf("%s: result %d is %v; expected %v", name, i, got, want)
			}
		}
		if times.Submit <= 0 || times.Done < times.Submit {
			t.Errorf("%s: times %+v", name, times)
		}
		if !cudatest.Simulated() {
			continue
		}
		if waits, products = cudatest.Count("cuStreamWaitEvent")-waits, cudatest.Count("cublasSgemm_v2")-products; waits != c.waits || products != c.count {
			t.Errorf("%s: %d products and %d waits; expected %d and %d", name, products, waits, c.count, c.waits)
		}
	}
}

func TestCopiesCarryPlainAndPageLockedMemory(t *testing.T) {
	g := open(t, 1)
	const n = 100_001
	source := rand.NewChaCha8([32]byte{1})
	pinned, err := g.AllocHost(n)
	ok(t, err)
	defer func() { ok(t, g.FreeHost(pinned)) }()
	p := memory(t, g, n)
	for name, host := range map[string][]byte{"plain": make([]byte, n), "page-locked": pinned} {
		_, _ = source.Read(host) // it never fails
		want := bytes.Clone(host)
		in, err := g.CopyIn(p, host)
		ok(t, err)
		clear(host)
		out, err := g.CopyOut(host, p)
		ok(t, err)
		if !bytes.Equal(host, want) {
			t.Errorf("%s memory came back changed", name)
		}
		for _, times := range []floor.Times{in, out} {
			if times.Done <= 0 || times.Done < times.Submit || times.Device <= 0 {
				t.Errorf("%s memory: times %+v", name, times)
			}
		}
	}
}

// TestCallsAreMadeAsOftenAsAsked counts them in the driver.
func TestCallsAreMadeAsOftenAsAsked(t *testing.T) {
	g := open(t, 2)
	const count = 300 // more than are in flight
	for call, functions := range map[floor.Call][]string{
		floor.Record:       {"cuEventRecord"},
		floor.Wait:         {"cuStreamWaitEvent"},
		floor.QueryEvent:   {"cuEventQuery"},
		floor.QueryStream:  {"cuStreamQuery"},
		floor.EventPair:    {"cuEventCreate", "cuEventDestroy_v2"},
		floor.MemoryPair:   {"cuMemAllocAsync", "cuMemFreeAsync"},
		floor.Block:        {"cuMemAllocAsync", "cuEventRecord", "cuMemFreeAsync"},
		floor.HostFunction: {"cuLaunchHostFunc"},
		floor.Empty:        nil,
	} {
		var before []int
		for _, f := range functions {
			before = append(before, cudatest.Count(f))
		}
		spent, err := g.Call(call, count)
		ok(t, err)
		if spent <= 0 {
			t.Errorf("call %d took %v", call, spent)
		}
		for i, f := range functions {
			if n := cudatest.Count(f) - before[i]; cudatest.Simulated() && n != count {
				t.Errorf("call %d made %d calls of %s; expected %d", call, n, f, count)
			}
		}
	}
	floor.Nothing()
}

func TestAStartGivesBackWhatItTook(t *testing.T) {
	open(t, 1)
	made := cudatest.Count("cuStreamCreateWithPriority")
	spent, err := floor.Start(0, 3)
	ok(t, err)
	if n := cudatest.Count("cuStreamCreateWithPriority") - made; spent <= 0 || cudatest.Simulated() && n != 3 {
		t.Errorf("%d streams in %v; expected 3", n, spent)
	}
	if n := cudatest.Live("stream"); cudatest.Simulated() && n != 1 {
		t.Errorf("%d streams live; expected the one of before", n)
	}
}

func TestMemoryIsCounted(t *testing.T) {
	g := open(t, 1)
	before, total, err := g.Memory()
	ok(t, err)
	const n = 64 << 20
	p, err := g.Alloc(n)
	ok(t, err)
	held, _, err := g.Memory()
	ok(t, errors.Join(err, g.Free(p)))
	if before > total || before-held < n {
		t.Errorf("of %d bytes %d were free, and %d with %d taken", total, before, held, n)
	}
}

func TestErrorsNameTheDeviceAndTheDriversCode(t *testing.T) {
	g := open(t, 2)
	_, outside := floor.Open(1000, 1)
	_, none := floor.Open(0, 0)
	_, tooMany := g.Products(floor.Single, 1, 0, 0, []floor.Address{0}, 3, 1, 1)
	_, tooMuch := g.Alloc(1 << 46)
	for _, c := range []struct {
		err      error
		text     string
		sentinel error
	}{
		{outside, "floor.Open on cuda:1000 (CUDA_ERROR_INVALID_DEVICE, code 101)", nil},
		{none, "floor.Open: 0 streams; expected at least 1", weir.ErrArgument},
		{tooMany, "floor.Products: 1 results, 3 streams and bursts of 1; expected at least 1 of each, and at most 2 streams", weir.ErrArgument},
		{tooMuch, "floor.Alloc on cuda:0 (CUDA_ERROR_OUT_OF_MEMORY, code 2): out of memory", weir.ErrOutOfMemory},
	} {
		if c.err == nil || c.err.Error() != c.text {
			t.Errorf("%v; expected %s", c.err, c.text)
		}
		if c.sentinel != nil && !errors.Is(c.err, c.sentinel) {
			t.Errorf("%v does not match %v", c.err, c.sentinel)
		}
	}
}
