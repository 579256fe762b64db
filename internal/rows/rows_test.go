package rows

import (
	"math"
	"math/big"
	"slices"
	"sort"
	"testing"
	"unsafe"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/weirgo/weir/dtype"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// address is where a slice's elements are; it must stay reachable.
func address[T any](x []T) uintptr {
	if len(x) == 0 {
		return 0
	}
	return uintptr(unsafe.Pointer(&x[0]))
}

// values draws numbers of which many are equal, and some infinite.
func values[T float32 | float64](t *rapid.T, n int) []T {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) T {
		return T(rapid.OneOf(rapid.Float64Range(-1e6, 1e6), rapid.SampledFrom([]float64{-2, -1, 0, 1, 2, math.Inf(1), math.Inf(-1)})).Draw(t, "x"))
	}), n, n).Draw(t, "values")
}

func selects[T float32 | float64](t *rapid.T, dt dtype.DType) {
	rows, n := rapid.IntRange(0, 4).Draw(t, "rows"), rapid.IntRange(1, 40).Draw(t, "n")
	k, smallest := rapid.IntRange(1, n).Draw(t, "k"), rapid.Bool().Draw(t, "smallest")
	a := values[T](t, rows*n)
	got, at := make([]T, rows*k), make([]int64, rows*k)
	Select(dt, smallest, int64(rows), int64(n), int64(k), address(a), address(got), address(at))
	for i := range rows {
		row := a[i*n:][:n]
		order := make([]int64, n)
		for j := range order {
			order[j] = int64(j)
		}
		less := func(x, y T) bool { return x < y || x == y && math.Signbit(float64(x)) && !math.Signbit(float64(y)) }
		sort.SliceStable(order, func(x, y int) bool {
			if smallest {
				return less(row[order[x]], row[order[y]])
			}
			return less(row[order[y]], row[order[x]])
		})
		for j := range k {
			if want := order[j]; at[i*k+j] != want || got[i*k+j] != row[want] {
				t.Fatalf("row %d of %v, place %d: got %v at %d; expected %v at %d", i, row, j, got[i*k+j], at[i*k+j], row[want], want)
			}
		}
	}
}

func TestSelectAgreesWithAStableSort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		selects[float32](t, dtype.Float32)
		selects[float64](t, dtype.Float64)
	})
}

func TestNaNLiesBeyondInfinityOfItsSign(t *testing.T) {
	positive := math.Float64frombits(0x7ff8000000000001)
	negative := math.Copysign(positive, -1)
	a := []float64{1, positive, math.Inf(1), negative, math.Inf(-1), math.Copysign(0, -1), 0}
	at, got := make([]int64, len(a)), make([]float64, len(a))
	for smallest, want := range map[bool][]int64{true: {3, 4, 5, 6, 0, 2, 1}, false: {1, 2, 0, 6, 5, 4, 3}} {
		Select(dtype.Float64, smallest, 1, int64(len(a)), int64(len(a)), address(a), address(got), address(at))
		if !slices.Equal(at, want) {
			t.Errorf("smallest %t: got %v; expected %v", smallest, at, want)
		}
	}
}

func reduces[T float32 | float64](t *rapid.T, dt dtype.DType, eps float64) {
	rows, n := rapid.IntRange(1, 4).Draw(t, "rows"), rapid.IntRange(1, 60).Draw(t, "n")
	a := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) T { return T(rapid.Float64Range(-1e6, 1e6).Draw(t, "x")) }), rows*n, rows*n).Draw(t, "values")
	got := map[Reduction][]T{}
	for r := Sum; r <= Max; r++ {
		got[r] = make([]T, rows)
		Reduce(dt, r, int64(rows), int64(n), address(a), address(got[r]))
	}
	for i := range rows {
		row := a[i*n:][:n]
		sum, squares, all := new(big.Float).SetPrec(600), new(big.Float).SetPrec(600), 0.0
		for _, x := range row {
			v := new(big.Float).SetPrec(600).SetFloat64(float64(x))
			sum.Add(sum, v)
			squares.Add(squares, v.Mul(v, v))
			all += math.Abs(float64(x))
		}
		exact, _ := sum.Float64()
		norm, _ := squares.Sqrt(squares).Float64()
		least := 0.0 // half a step of numbers that are too small to be normal
		if dt == dtype.Float32 {
			least = 0x1p-150
		}
		for r, c := range map[Reduction]struct{ want, within float64 }{
			Sum:  {exact, eps*math.Abs(exact) + 0x1p-53*float64(n)*all + least},
			Mean: {exact / float64(n), eps*math.Abs(exact)/float64(n) + 0x1p-52*all + least},
			Norm: {norm, (2*eps+0x1p-52*float64(n))*norm + 1e-150}, // squares vanish below
			Min:  {float64(slices.Min(row)), 0},
			Max:  {float64(slices.Max(row)), 0},
		} {
			if miss := math.Abs(float64(got[r][i]) - c.want); !(miss <= c.within) {
				t.Fatalf("reduction %d of %v: got %v; expected %v within %v", r, row, got[r][i], c.want, c.within)
			}
		}
	}
}

func TestReduceAgreesWithExactSums(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		reduces[float32](t, dtype.Float32, 0x1p-24)
		reduces[float64](t, dtype.Float64, 0x1p-53)
	})
}

func TestWhatIsNotFiniteAndWhatIsEmptyReducesAsSaid(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		row  []float64
		want [5]float64
	}{
		{[]float64{1, inf, 2}, [5]float64{inf, inf, inf, 1, inf}},
		{[]float64{-inf, 1}, [5]float64{-inf, -inf, inf, -inf, 1}},
		{[]float64{inf, -inf}, [5]float64{nan, nan, inf, -inf, inf}},
		{[]float64{1, nan, 2}, [5]float64{nan, nan, nan, nan, nan}},
		{nil, [5]float64{0, nan, 0, inf, -inf}},
	} {
		for r, want := range c.want {
			var got [1]float64
			Reduce(dtype.Float64, Reduction(r), 1, int64(len(c.row)), address(c.row), address(got[:]))
			if got[0] != want && !(math.IsNaN(got[0]) && math.IsNaN(want)) {
				t.Errorf("reduction %d of %v: got %v; expected %v", r, c.row, got[0], want)
			}
		}
	}
}
