package tensor

import (
	"fmt"
	goruntime "runtime"
	"strings"
	"testing"
	"unsafe"
	"weak"
)

// TestCachedPlansKeepNothingOfTheCallerAlive but the shapes: the operands'
// names and the function that is told of progress go when the caller drops them.
func TestCachedPlansKeepNothingOfTheCallerAlive(t *testing.T) {
	ctx := start(t)
	a := must(Zeros(ctx, Float32, 3, 7))
	const spec = "ij,ik->jk" // with these shapes, of no other test
	for round := range 2 {   // the cache misses, then hits
		list, text, told := planWithNames(t, spec, a)
		for range 3 {
			goruntime.GC()
		}
		if list.Value() != nil || text.Value() != nil {
			t.Errorf("round %d: the operands' names are still held", round)
		}
		if told.Value() != nil {
			t.Errorf("round %d: the function that is told of progress is still held", round)
		}
		if key := planKey(EinsumOptions{}, []*Array{a, a}, "e"+spec); !plans.Contains(key) {
			t.Fatalf("round %d: the plan is not cached; so nothing is shown", round)
		}
	}
}

// TestNamesAreCountedWhetherOrNotThePlanIsCached.
func TestNamesAreCountedWhetherOrNotThePlanIsCached(t *testing.T) {
	ctx := start(t)
	a := must(Zeros(ctx, Float32, 3, 8))
	const spec = "ij,ik->kj" // with these shapes, of no other test
	for _, cached := range []string{"before", "after"} {
		for _, names := range [][]string{{"a"}, {"a", "b", "c"}} {
			_, err := PlanEinsum(EinsumOptions{Names: names}, spec, a, a)
			if want := fmt.Sprintf("einsum: names: got %d; expected one for each of the 2 operands", len(names)); err == nil || err.Error() != want {
				t.Errorf("%s the plan is cached: %v; expected %s", cached, err, want)
			}
		}
		must(PlanEinsum(EinsumOptions{}, spec, a, a))
	}
}

// planWithNames plans and drops the plan; what it answers is seen by the
// collector as nobody's.
//
//go:noinline
func planWithNames(t *testing.T, spec string, a *Array) (list weak.Pointer[string], text weak.Pointer[byte], told weak.Pointer[[64]byte]) {
	name := strings.Repeat("a long name ", 10)
	names := []string{name, "b"}
	captured := &[64]byte{}
	o := EinsumOptions{Names: names, Progress: func(done, _ int) { captured[0] = byte(done) }}
	p := must(PlanEinsum(o, spec, a, a))
	o.Progress(1, 1)
	if p.options.Names[0] != name || p.options.Progress == nil {
		t.Error("the caller's own plan lacks its options")
	}
	return weak.Make(&names[0]), weak.Make(unsafe.StringData(name)), weak.Make(captured)
}
