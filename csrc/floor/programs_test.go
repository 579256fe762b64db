//go:build cuda

package floor_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/csrc/floor"
	"github.com/weirgo/weir/internal/driver/cuda/cudatest"
)

// wholes answers rows·columns whole numbers from -1 to 1, whose products are exact.
func wholes(seed uint64, rows, columns int) []float32 {
	random := rand.New(rand.NewPCG(seed, 2))
	m := make([]float32, rows*columns)
	for i := range m {
		m[i] = float32(random.IntN(3) - 1)
	}
	return m
}

// product is a·b of row-major m×k and k×n matrices.
func product(m, n, k int, a, b []float32) []float32 {
	c := make([]float32, m*n)
	for i := range m {
		for j := range n {
			for l := range k {
				c[i*n+j] += a[i*k+l] * b[l*n+j]
			}
		}
	}
	return c
}

func TestABatchIsOfProductsOfItsOwnMatrices(t *testing.T) {
	g := open(t, 1)
	const n, count = 5, 7
	a, b := wholes(1, count*n, n), wholes(2, count*n, n)
	atA, atB := upload(t, g, a), upload(t, g, b)
	var want []float32
	for i := range count {
		want = append(want, product(n, n, n, a[i*n*n:], b[i*n*n:])...)
	}
	for way, function := range map[floor.Way]string{
		floor.Strided: "cublasSgemmStridedBatched", floor.Pointers: "cublasSgemmBatched", floor.CopiedPointers: "cublasSgemmBatched",
	} {
		atC := upload(t, g, make([]float32, count*n*n))
		batch, err := g.Batch(n, atA, atB, atC, count)
		ok(t, err)
		copies, calls := cudatest.Count("cuMemcpyHtoDAsync_v2"), cudatest.Count(function)
		times, err := batch.Run(way)
		ok(t, err)
		copies, calls = cudatest.Count("cuMemcpyHtoDAsync_v2")-copies, cudatest.Count(function)-calls
		if got := download[float32](t, g, atC, count*n*n); !slices.Equal(got, want) {
			t.Errorf("way %d: %v; expected %v", way, got, want)
		}
		if times.Submit <= 0 || times.Done < times.Submit {
			t.Errorf("way %d: times %+v", way, times)
		}
		if cudatest.Simulated() && (calls != 1 || (copies == 1) != (way == floor.CopiedPointers)) {
			t.Errorf("way %d: %d calls of %s and %d copies", way, calls, function, copies)
		}
		ok(t, batch.Close())
	}
}

// steps answers products of mixed shapes, some of which take what some before made,
// and what their results are to be.
func steps(t *testing.T, g *floor.GPU) (all []floor.Step, want [][]float32) {
	random := rand.New(rand.NewPCG(3, 3))
	for i := range 24 {
		s := floor.Step{M: 1 + random.IntN(9), N: 1 + random.IntN(9), K: 1 + random.IntN(9)}
		a, b := wholes(uint64(100+i), s.M, s.K), wholes(uint64(200+i), s.K, s.N)
		s.A, s.B, s.C = upload(t, g, a), upload(t, g, b), memory(t, g, 4*s.M*s.N)
		if before := i - 1 - random.IntN(5); before >= 0 && i%4 != 0 { // on whatever stream
			s.A, s.M, s.K, a = all[before].C, all[before].M, all[before].N, want[before]
			s.B, b = upload(t, g, wholes(uint64(300+i), s.K, s.N)), wholes(uint64(300+i), s.K, s.N)
			s.C, s.After = memory(t, g, 4*s.M*s.N), []int{before}
		}
		all, want = append(all, s), append(want, product(s.M, s.N, s.K, a, b))
	}
	return all, want
}

// TestAProgramGivesWhatItsStepsSay however it is submitted. The simulator runs a
// graph's branches in another order than they were captured in.
func TestAProgramGivesWhatItsStepsSay(t *testing.T) {
	g := open(t, 8)
	all, want := steps(t, g)
	for _, streams := range []int{1, 3, 8} {
		p, err := g.Program(all, streams)
		ok(t, err)
		for name, run := range map[string]func() (floor.Times, error){"one by one": p.Run, "replayed": func() (floor.Times, error) { return p.Replay(3) }} {
			if name == "replayed" { // the first one runs it too
				_, err := p.Replay(1)
				ok(t, err)
			}
			for i, s := range all {
				_, err := g.CopyIn(s.C, bytesOf(make([]float32, len(want[i]))))
				ok(t, err)
			}
			launches, products := cudatest.Count("cuGraphLaunch"), cudatest.Count("cublasSgemm_v2")
			times, err := run()
			ok(t, err)
			launches, products = cudatest.Count("cuGraphLaunch")-launches, cudatest.Count("cublasSgemm_v2")-products
			for i, s := range all {
				if got := download[float32](t, g, s.C, len(want[i])); !slices.Equal(got, want[i]) {
					t.Errorf("%s on %d streams: step %d is %v; expected %v", name, streams, i, got, want[i])
				}
			}
			if times.Submit <= 0 || times.Done < times.Submit {
				t.Errorf("%s: times %+v", name, times)
			}
			if expected := map[string][2]int{"one by one": {0, len(all)}, "replayed": {3, 0}}[name]; cudatest.Simulated() && expected != [2]int{launches, products} {
				t.Errorf("%s: %d launches of graphs and %d products; expected %v", name, launches, products, expected)
			}
		}
		ok(t, p.Close())
	}
	for _, kind := range []string{"graph", "graph-exec"} {
		if n := cudatest.Live(kind); n != 0 {
			t.Errorf("%d of kind %s live at the end", n, kind)
		}
	}
}

func TestProgramsRefuseWhatTheyCannotRun(t *testing.T) {
	g := open(t, 2)
	one := []floor.Step{{M: 1, N: 1, K: 1}}
	_, none := g.Program(nil, 1)
	_, streams := g.Program(one, 3)
	_, itself := g.Program([]floor.Step{{M: 1, N: 1, K: 1, After: []int{0}}}, 1)
	_, empty := g.Batch(0, 0, 0, 0, 1)
	for text, err := range map[string]error{
		"floor.Program: 0 steps on 1 streams; expected at least 1 on 1 to 2":           none,
		"floor.Program: 1 steps on 3 streams; expected at least 1 on 1 to 2":           streams,
		"floor.Program: step 0 comes after step 0; expected one before it":             itself,
		"floor.Batch: 1 products of 0×0 matrices; expected at least 1 of at least 1×1": empty,
	} {
		if fmt.Sprint(err) != text || !errors.Is(err, weir.ErrArgument) {
			t.Errorf("%v; expected %s", err, text)
		}
	}
}
