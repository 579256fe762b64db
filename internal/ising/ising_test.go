package ising

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/tensor"
)

// temperatures reach from one end to the other, and close to the critical one
// on both sides.
var temperatures = []float64{MinTemperature, 1e-3, 0.05, 0.5, 1, 2,
	CriticalTemperature * (1 - 1e-9), CriticalTemperature, math.Nextafter(CriticalTemperature, 3), CriticalTemperature * (1 + 1e-9),
	2.5, 4, 20, 1e4, 1e9, MaxTemperature}

const tolerance = 1e-13 // relative, of log Z

func TestNetworkAndKaufmanAgreeWithTheSumOverAllStates(t *testing.T) {
	for size := 1; size <= 4; size++ {
		states := enumerate(size)
		for _, temperature := range temperatures {
			m := model(t, size, temperature)
			want := states.logZ(1 / temperature)
			near(t, fmt.Sprintf("Kaufman, size %d, temperature %v", size, temperature), m.Kaufman(), want)
			near(t, fmt.Sprintf("network, size %d, temperature %v", size, temperature), contract(t, m), want)
			near(t, fmt.Sprintf("rows, size %d, temperature %v", size, temperature), rows(t, m), want)
		}
	}
}

func TestNetworkAgreesWithKaufmanWhereNobodyCanEnumerate(t *testing.T) {
	for size := 5; size <= 8; size++ {
		for _, temperature := range temperatures {
			m := model(t, size, temperature)
			near(t, fmt.Sprintf("size %d, temperature %v", size, temperature), contract(t, m), m.Kaufman())
			near(t, fmt.Sprintf("rows, size %d, temperature %v", size, temperature), rows(t, m), m.Kaufman())
		}
	}
}

// Onsager's free energy of the infinite lattice at the critical temperature is
// -T·(ln 2/2 + 2G/π), with Catalan's constant G. The torus comes close as
// log Z/L² - its limit = ln(2^¼ + 2^-½)/L² + O(L^-4): A. E. Ferdinand and M. E.
// Fisher, Phys. Rev. 185, 832 (1969).
func TestKaufmanApproachesOnsagersLatticeAsFerdinandAndFisherSay(t *testing.T) {
	const catalan = 0.915965594177219015
	limit := math.Ln2/2 + 2*catalan/math.Pi
	m := model(t, MaxSize, CriticalTemperature)
	excess := m.Kaufman() - limit*float64(m.Sites())
	if want := math.Log(math.Pow(2, 0.25) + math.Pow(2, -0.5)); math.Abs(excess-want) > 1e-3 {
		t.Errorf("log Z exceeds the infinite lattice's by %v; expected %v", excess, want)
	}
}

func TestFreeEnergyIsTheGroundStatesWhenColdAndTheEntropyWhenHot(t *testing.T) {
	cold, hot := model(t, 6, 1e-3), model(t, 6, 1e9)
	// Two ground states of energy -2 a site.
	near(t, "cold", cold.FreeEnergy(cold.Kaufman()), -2-1e-3*math.Ln2/36)
	near(t, "hot", hot.FreeEnergy(hot.Kaufman()), -1e9*math.Ln2)
}

func TestNewRefusesWhatIsNoModel(t *testing.T) {
	for _, c := range []struct {
		size        int
		temperature float64
		want        string
	}{
		{0, 1, "ising: size 0; expected 1 to 24"},
		{-3, 1, "ising: size -3; expected 1 to 24"},
		{25, 1, "ising: size 25; expected 1 to 24"},
		{8, 0, "ising: temperature 0; expected 1e-300 to 1e+300"},
		{8, -1, "ising: temperature -1; expected 1e-300 to 1e+300"},
		{8, math.NaN(), "ising: temperature NaN; expected 1e-300 to 1e+300"},
		{8, math.Inf(1), "ising: temperature +Inf; expected 1e-300 to 1e+300"},
	} {
		_, err := New(c.size, c.temperature)
		if err == nil || err.Error() != c.want || !errors.Is(err, weir.ErrArgument) {
			t.Errorf("New(%d, %v): %v; expected %s", c.size, c.temperature, err, c.want)
		}
	}
}

func TestLogZEndsWithItsContext(t *testing.T) {
	n := network(t, model(t, 4, 1))
	ctx, cancel := context.WithCancel(t.Context())
	_, err := n.LogZ(ctx, tensor.EinsumOptions{Progress: func(done, total int) { cancel() }})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v; expected %v", err, context.Canceled)
	}
}

func model(t *testing.T, size int, temperature float64) Model {
	t.Helper()
	m, err := New(size, temperature)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func network(t *testing.T, m Model) *Network {
	t.Helper()
	n, err := m.Network(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Free(); err != nil {
			t.Error(err)
		}
	})
	return n
}

func contract(t *testing.T, m Model) float64 {
	t.Helper()
	logZ, err := network(t, m).LogZ(t.Context(), tensor.EinsumOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return logZ
}

// rows contracts by package flow, and checks what it was said to cost: all that
// was asked for, and the memory that it took.
func rows(t *testing.T, m Model) float64 {
	t.Helper()
	steps := 0
	logZ, err := network(t, m).LogZRows(t.Context(), m, func(done, total int) {
		if steps++; done != steps || total != m.Rows().Steps {
			t.Errorf("step %d of %d is said to be %d of %d", steps, m.Rows().Steps, done, total)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if steps != m.Rows().Steps {
		t.Errorf("size %d: %d steps; %d were said", m.size, steps, m.Rows().Steps)
	}
	return logZ
}

func TestRowsTakeTheMemoryThatWasSaid(t *testing.T) {
	r, err := runtime.Here(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	memory, err := buffer.Of(r)
	if err != nil {
		t.Fatal(err)
	}
	for size := 7; size <= 9; size++ {
		ctx, free := tensor.Scope(t.Context())
		m := model(t, size, 2)
		n := network(t, m)
		runtime.Collect()
		before := memory.Stats().Used
		memory.ResetPeak()
		if _, err := n.LogZRows(ctx, m, nil); err != nil {
			t.Fatal(err)
		}
		if got, said := memory.Stats().HighUsed-before, m.Rows().PeakBytes; got > said || got < said/3 {
			t.Errorf("size %d takes %d bytes; %d were said", size, got, said)
		}
		if err := free(); err != nil {
			t.Error(err)
		}
	}
}

func TestLogZRowsEndsWithItsContext(t *testing.T) {
	m := model(t, 4, 1)
	n := network(t, m)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := n.LogZRows(ctx, m, func(done, total int) { cancel() })
	if !errors.Is(err, weir.ErrCancelled) {
		t.Errorf("%v; expected %v", err, weir.ErrCancelled)
	}
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance*math.Abs(want)) {
		t.Errorf("%s: %.17g; expected %.17g", what, got, want)
	}
}

// census counts the states of a lattice by the sum of σσ' over its bonds.
type census map[int]int

// enumerate visits every state of the size×size torus.
func enumerate(size int) census {
	states := census{}
	sites := size * size
	for state := range 1 << sites {
		spin := func(row, column int) int {
			return 2*(state>>(row%size*size+column%size)&1) - 1
		}
		sum := 0
		for row := range size {
			for column := range size {
				sum += spin(row, column) * (spin(row+1, column) + spin(row, column+1))
			}
		}
		states[sum]++
	}
	return states
}

// logZ is the logarithm of the sum of count·exp(beta·sum).
func (c census) logZ(beta float64) float64 {
	most := math.MinInt
	for sum := range c {
		most = max(most, sum)
	}
	z := 0.0
	for sum, count := range c {
		z += float64(count) * math.Exp(beta*float64(sum-most))
	}
	return math.Log(z) + beta*float64(most)
}
