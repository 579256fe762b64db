package flow_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/weirgo/weir/async"
	"github.com/weirgo/weir/internal/driver"
	nothing "github.com/weirgo/weir/internal/driver/hollow"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/tensor"
	"github.com/weirgo/weir/tensor/flow"
)

// BenchmarkOwnCost is what independent products through flow take beside the driver,
// until all are launched, and of that to ask for them.
func BenchmarkOwnCost(b *testing.B) {
	for _, count := range []int{64, 4096} {
		b.Run(fmt.Sprint(count), func(b *testing.B) { ownCost(b, count) })
	}
}

func ownCost(b *testing.B, count int) {
	rt, err := runtime.StartFamilies([]driver.Family{nothing.New()}, runtime.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer rt.Close()
	ctx := context.Background()
	var operands, results []*flow.Value
	for range 2 * count {
		a, err := tensor.Empty(ctx, tensor.Float32, 8, 8)
		if err != nil {
			b.Fatal(err)
		}
		defer a.Free()
		operands = append(operands, async.Of(a))
	}
	var asked, done time.Duration
	rounds := 0
	for b.Loop() {
		results = results[:0]
		start := time.Now()
		for i := range count {
			results = append(results, flow.MatMul(ctx, operands[i], operands[count+i]))
		}
		asked += time.Since(start)
		for _, v := range results {
			if _, err := v.Get(ctx); err != nil {
				b.Fatal(err)
			}
		}
		done += time.Since(start)
		rounds++
		for _, v := range results {
			flow.Free(ctx, v)
		}
	}
	n := float64(rounds * count)
	b.ReportMetric(float64(asked.Nanoseconds())/n, "ns/asked")
	b.ReportMetric(float64(done.Nanoseconds())/n, "ns/product")
}
