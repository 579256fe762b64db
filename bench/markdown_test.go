package bench

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestADocumentHasTheRunAndItsTables(t *testing.T) {
	strange := Result{Scenario: "gemm", Case: "a|b *c*", Unit: "us/op", Err: wrong("7\nis 8")}
	var b bytes.Buffer
	if err := WriteMarkdown(&b, aHeader(), []Result{sample(), {Scenario: "gpu", Skipped: "it needs a GPU"}, strange}); err != nil {
		t.Fatal(err)
	}
	want := `# weir bench on cuda:0, NVIDIA H200

- date: 2026-11-30T08:15:00Z
- device: cuda:0, NVIDIA H200
- libraries: driver /lib/libcuda.so.550
- processor: a processor
- load: 0.1 0.2 0.3
- blas: gonum v0.17.0, 2 threads
- go: go1.26
- weir: v1.2.3
- peers: torch 2.4 in Python 3.11
- settings: GOGC=50
- command: weir bench &lt;all> \| tee

Value and floor are the medians of alternating rounds, in time per operation; the ratio is value over floor, and the quartiles are those of the rounds' ratios. A row with + is a peer's: the same work by another library, in rounds of its own, over the same floor.

## lease

| value / floor | value | floor | unit | ratio | quartiles | allocs | required | also |
|---|---|---|---|---|---|---|---|---|
| stream / mutex | 120 | 10.0 | ns/op | 12.000 | 11.500-12.250 | 0 / 2 | value &lt;= 150 ns/op: ok | p50 110 ns, fraction 0.5 |
| + torch loop | 240 |  | ns/op | 24.000 | 23.000-25.000 | - | - |  |
| + jax | failed |  |  |  |  |  |  |  |

stream / mutex: jax failed: it fell

## gpu

not measured: it needs a GPU

## gemm

| value / floor | value | floor | unit | ratio | quartiles | allocs | required | also |
|---|---|---|---|---|---|---|---|---|
| a\|b \*c\* | failed |  |  |  |  |  |  |  |

a\|b \*c\* failed: bench.Check: 7 is 8: the check failed
`
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Errorf("the document differs (-want +got):\n%s", d)
	}
}
