package bench

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver/fault"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/tensor"
)

// kinds are products of each kind, small.
var kinds = map[string]products{
	"independent": independentProducts(5, 9),
	"chain":       chainProducts(6, 20),
	"mixed":       mixedProducts(1, 9, 15),
	"layers":      layeredProducts(6, 3, 4),
}

// results are the products by the definition, in float64.
func (p products) results() [][]float64 {
	var all [][]float64
	for _, s := range p.sources {
		m := make([]float64, len(s.data))
		for i, x := range s.data {
			m[i] = float64(x)
		}
		all = append(all, m)
	}
	for _, s := range p.steps {
		a, b, c := all[s.a], all[s.b], make([]float64, s.m*s.n)
		for i := range s.m {
			for j := range s.n {
				for k := range s.k {
					c[i*s.n+j] += a[i*s.k+k] * b[k*s.n+j]
				}
			}
		}
		all = append(all, c)
	}
	return all[len(p.sources):]
}

func TestReferencesOfProductsComputeWhatTheDefinitionSays(t *testing.T) {
	start(t)
	for name, p := range kinds {
		ref, err := hostReference(p)
		if err != nil {
			t.Fatal(err)
		}
		referenceComputes(t, name, p, ref)
	}
}

// referenceComputes runs and closes the reference.
func referenceComputes(t *testing.T, name string, p products, ref *reference) {
	t.Helper()
	if d, err := ref.run(); err != nil || d <= 0 {
		t.Fatalf("%s: %v, %v", name, d, err)
	}
	for i, want := range p.results() {
		got, err := ref.result(i)
		if err != nil {
			t.Fatal(err)
		}
		for k := range want {
			if d := float64(got[k]) - want[k]; d > 1e-4 || d < -1e-4 || len(got) != len(want) {
				t.Fatalf("%s: element %d of result %d is %v; expected %v", name, k, i, got[k], want[k])
			}
		}
	}
	if err := ref.close(); err != nil {
		t.Error(err)
	}
}

// TestAChainOfRotationsKeepsItsLength, or a thousand of them would overflow.
func TestAChainOfRotationsKeepsItsLength(t *testing.T) {
	p := chainProducts(8, 50)
	norm := func(m []float64) (sum float64) {
		for _, x := range m {
			sum += x * x
		}
		return sum
	}
	all := p.results()
	first, last := norm(all[0]), norm(all[len(all)-1])
	if d := last/first - 1; d > 1e-4 || d < -1e-4 {
		t.Errorf("the squared length is %v after the first and %v after the last", first, last)
	}
	if reflect.DeepEqual(all[len(all)-1], all[len(all)-3]) {
		t.Error("a rotation done twice is nothing")
	}
}

// TestNoTwoProductsInLayersAreAlike, or a compiler makes one of them.
func TestNoTwoProductsInLayersAreAlike(t *testing.T) {
	all := layeredProducts(6, 3, 4).results()
	for i, m := range all {
		for j := range i {
			if reflect.DeepEqual(m, all[j]) {
				t.Errorf("results %d and %d are alike", j, i)
			}
		}
	}
}

func TestAResultIsSpentByTheLastStepThatTakesIt(t *testing.T) {
	p := products{sources: make([]source, 2), steps: []step{{a: 0, b: 1}, {a: 0, b: 2}, {a: 2, b: 3}, {a: 0, b: 0}}}
	spent, finals := p.lastUses()
	if want := [][]int{nil, nil, {0, 1}, nil}; !reflect.DeepEqual(spent, want) || !reflect.DeepEqual(finals, []int{2, 3}) {
		t.Errorf("%v and %v; expected %v and [2 3]", spent, finals, want)
	}
}

// flowOn readies products on r's device beside the host's BLAS.
func flowOn(t *testing.T, ctx context.Context, r *runtime.Resources, p products) *flowing {
	t.Helper()
	x, err := openFlow(ctx, Env{Resources: r}, p, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.close(); err != nil {
			t.Error(err)
		}
	})
	return x
}

func TestRoundsOfFlowLeaveTheSourcesAlone(t *testing.T) {
	r := start(t)
	for name, p := range kinds {
		before := len(r.Live())
		x := flowOn(t, t.Context(), r, p)
		if err := x.check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for range 3 {
			if d, err := x.round(nil); err != nil || d <= 0 {
				t.Errorf("%s: %v, %v", name, d, err)
			}
			if n := len(r.Live()) - before; n != len(p.sources) {
				t.Errorf("%s: %d arrays live after a round; expected %d sources", name, n, len(p.sources))
			}
		}
		if len(x.sent.all) != 3 || len(x.cpu.all) != 3 {
			t.Errorf("%s: %d and %d samples; expected 3, none of the check", name, len(x.sent.all), len(x.cpu.all))
		}
	}
}

func TestAWrongResultOfFlowFailsTheCheck(t *testing.T) {
	r := start(t)
	for name, p := range kinds {
		x := flowOn(t, t.Context(), r, p)
		right := x.ref.result
		x.ref.result = func(i int) ([]float32, error) {
			data, err := right(i)
			data = append([]float32{}, data...)
			if i == len(p.steps)-1 {
				data[0] += 0.1
			}
			return data, err
		}
		if err := x.check(); !errors.Is(err, ErrCheck) {
			t.Errorf("%s: %v; expected a failed check", name, err)
		}
	}
}

func TestFlowsHavePeersThatAreChecked(t *testing.T) {
	flowsHavePeers(t, Env{Resources: start(t), Quick: true})
}

// flowsHavePeers checks that every scenario of products through flow that fits env has
// peers, and that they are held to what the floor computed.
func flowsHavePeers(t *testing.T, env Env) {
	t.Helper()
	for _, s := range []Scenario{flowIndependent, flowChain, flowMixed, flowReplay, flowStreams, flowHost} {
		if s.On.fits(env.Resources.Device()) != "" {
			continue
		}
		for _, c := range s.Cases(env) {
			x, err := c.Open(t.Context())
			if err != nil {
				t.Fatalf("%s: %s: %v", s.Name, c.Name, err)
			}
			if err := errors.Join(x.Check(), peersAreChecked(t, x)); err != nil {
				t.Errorf("%s: %s: %v", s.Name, c.Name, err)
			}
			if err := x.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// peersAreChecked has the peers' work done by the definition, once right and once wrong
// in one element of each result.
func peersAreChecked(t *testing.T, x *Trial) error {
	t.Helper()
	if x.Peers == nil || x.Peers.Operations != x.Fixed {
		return fmt.Errorf("the peers' work is %+v; expected that of %d operations", x.Peers, x.Fixed)
	}
	r, _, err := x.Peers.request(effortOf(true), t.TempDir())
	if err != nil {
		return err
	}
	values := fakeProducts(r)
	check := func() error {
		var results [][]byte
		for _, v := range values {
			results = append(results, peerInput(v).Data)
		}
		return x.Peers.Check(results)
	}
	if err := check(); err != nil {
		return err
	}
	for k, v := range values {
		v[len(v)-1] += 0.1
		if err := check(); !errors.Is(err, ErrCheck) || !strings.HasPrefix(err.Error(), fmt.Sprintf("result %d:", k)) {
			return fmt.Errorf("with an element of result %d changed: %w; expected a failed check of it", k, err)
		}
		v[len(v)-1] -= 0.1
	}
	return nil
}

func TestARoundThatIsCancelledOrFailsGivesAllBack(t *testing.T) {
	plan := &fault.Plan{}
	rt, r := startFaulty(t, plan)
	for name, p := range kinds {
		ctx, cancel := context.WithCancel(t.Context())
		x, err := openFlow(ctx, Env{Resources: r}, p, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, call := range []fault.Call{fault.BLASGemm, fault.BLASGemmGroups} { // one by one or together
			plan.FailFrom(call, 1, nil)
		}
		if _, err := x.round(nil); !errors.Is(err, fault.ErrInjected) {
			t.Errorf("%s: %v; expected the injected failure", name, err)
		}
		plan.Clear()
		if err := x.check(); err != nil {
			t.Errorf("%s after it: %v", name, err)
		}
		cancel()
		if _, err := x.round(nil); !errors.Is(err, weir.ErrCancelled) {
			t.Errorf("%s: %v; expected that it was cancelled", name, err)
		}
		if err := x.close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := rt.Close(); err != nil {
		t.Error(err)
	}
}

func TestALargeProductAmongSmallOnesIsCheckedToo(t *testing.T) {
	r := start(t)
	x := flowOn(t, t.Context(), r, independentProducts(5, 9))
	if err := x.check(); err != nil {
		t.Fatal(err)
	}
	for scale, want := range map[complex128]error{1: nil, 2: ErrCheck} {
		large, err := tensor.Full(x.ctx, scale, tensor.Float32, 16, 16)
		if err != nil {
			t.Fatal(err)
		}
		among := &largeAmong{flowing: x, large: large, n: 16}
		if err := among.check(); !errors.Is(err, want) {
			t.Errorf("the square of a matrix of %v: %v; expected %v", scale, err, want)
		}
		if d, err := among.round(0); err != nil || d <= 0 {
			t.Errorf("%v, %v", d, err)
		}
		if err := large.Free(); err != nil {
			t.Error(err)
		}
	}
}
