package tensor

import (
	"testing"

	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/hollow"
)

// BenchmarkOwnCost is what GemmInto takes beside the driver: of operands that were
// not used before, and of those that the product before wrote.
func BenchmarkOwnCost(b *testing.B) {
	for name, swap := range map[string]bool{"alone": false, "chain": true} {
		b.Run(name, func(b *testing.B) {
			ctx := startOn(b, []driver.Family{hollow.New()})
			var x [3]*Array
			for i := range x {
				x[i] = must(Empty(ctx, Float32, 64, 64))
			}
			from, to := 1, 2
			b.ReportAllocs()
			for b.Loop() {
				if err := GemmInto(ctx, 1, x[0], x[from], 0, x[to]); err != nil {
					b.Fatal(err)
				}
				if swap {
					from, to = to, from
				}
			}
		})
	}
}
