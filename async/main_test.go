package async_test

import (
	"context"
	"testing"

	"go.uber.org/goleak"

	"github.com/weirgo/weir/async"
	"github.com/weirgo/weir/scheduler"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// BenchmarkTask is a task that does nothing: Go, Await of a ready value, Set, Get.
func BenchmarkTask(b *testing.B) {
	p, _ := scheduler.NewPool(scheduler.Options{})
	defer p.Close()
	ctx := scheduler.With(context.Background(), p)
	in := async.Of(1)
	b.ReportAllocs()
	for range b.N {
		out := async.New[int]("out")
		r, w := in.Read(), out.Write()
		async.Go(ctx, "nothing", func(ctx context.Context) error {
			v, err := r.Await(ctx)
			if err != nil {
				return err
			}
			return w.Set(v)
		}, r, w)
		if _, err := out.Get(ctx); err != nil {
			b.Fatal(err)
		}
	}
}
