package einsum

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirgo/weir/dtype"
)

func TestExplainTellsEveryStepAndTheTotals(t *testing.T) {
	p := mustBind(t, "...ab,bcz,cdd->...ad", []int64{6, 100, 20}, []int64{20, 300, 1}, []int64{300, 5, 5})
	path := mustPath(t, p, Options{DType: dtype.Complex64, MemoryLimit: 1 << 20})
	want := `...ab,bcz,cdd->...ad, 3 operands of complex64
'...' is e
of extent 1, left out: z
step  terms  contraction  extents       flops  result     live       copies
1     1 2    bc,cdd->bd   20x5 sum 300  240 k  800 B      12.5 KiB   right
2     0 3    eab,bd->ead  600x5 sum 20  480 k  23.44 KiB  24.22 KiB  none
found by        optimal (dynamic programming)
flops           720 k; one sum over all indices 216 M, 300 times as many
largest result  3 k elements, 23.44 KiB
peak memory     24.22 KiB; limit 1 MiB
`
	if diff := cmp.Diff(want, path.String()); diff != "" {
		t.Error(diff)
	}
}

func TestExplainTellsReductionsAndElementwiseProducts(t *testing.T) {
	p := mustBind(t, "ij,ik->i", []int64{4, 3}, []int64{4, 5})
	want := `ij,ik->i, 2 operands of float32
step  terms  contraction  extents   flops  result  live  copies
1     0      ij->i        4 sum 3   12     16 B    16 B  none
2     1      ik->i        4 sum 5   20     16 B    32 B  none
3     2 3    i,i->i       4 of 1x1  4      16 B    48 B  none
found by        one product
flops           36; one sum over all indices 120, 3.333 times as many
largest result  4 elements, 16 B
peak memory     48 B; no limit
`
	if diff := cmp.Diff(want, mustPath(t, p, Options{}).String()); diff != "" {
		t.Error(diff)
	}
}

func TestExplainOfAnEmptyProductHasNoSpeedUp(t *testing.T) {
	path := mustPath(t, mustBind(t, "ij,jk->ik", []int64{2, 0}, []int64{0, 3}), Options{})
	if want := "flops           0; one sum over all indices 0\n"; !strings.Contains(path.String(), want) {
		t.Errorf("got\n%v", path)
	}
}

type brokenWriter struct{}

var errBroken = errors.New("broken")

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

func TestExplainReturnsTheWritersError(t *testing.T) {
	path := mustPath(t, mustBind(t, "i->", []int64{2}), Options{})
	if err := path.Explain(brokenWriter{}); !errors.Is(err, errBroken) {
		t.Errorf("got %v", err)
	}
}

func TestUnitsAreForPeople(t *testing.T) {
	for n, want := range map[float64]string{
		0: "0", 0.5: "0.5", 7: "7", 999: "999", 999.7: "1 k", 1000: "1 k", 1234567: "1.23 M", 999999: "1 M", 1e24: "1 Y", 1e30: "1e+30", math.Inf(1): "more than 1e300",
	} {
		if got := count(n); got != want {
			t.Errorf("count(%v): got %q; want %q", n, got, want)
		}
	}
	for n, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1024: "1 KiB", 1536: "1.5 KiB", 1 << 20: "1 MiB", 1 << 62: "4 EiB", math.MaxInt64: "8 EiB",
	} {
		if got := size(n); got != want {
			t.Errorf("size(%v): got %q; want %q", n, got, want)
		}
	}
}
