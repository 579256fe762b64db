package async_test

import (
	"context"
	"errors"
	"testing"

	"go.uber.org/goleak"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/async"
	"github.com/weirgo/weir/scheduler"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTasksReadAndWriteValues(t *testing.T) {
	p, err := scheduler.NewPool(scheduler.Options{Lanes: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []scheduler.Scheduler{p, scheduler.NewDebug(scheduler.DebugOptions{Seed: 1})} {
		ctx := scheduler.With(context.Background(), s)
		x, y := async.New[int]("x"), async.New[int]("y")
		w := x.Write()
		r, wy := x.Read(), y.Write()
		async.Go(ctx, "double", func(ctx context.Context) error {
			v, err := r.Await(ctx)
			if err != nil {
				return err
			}
			return wy.Set(2 * v)
		}, r, wy)
		async.Go(ctx, "one", func(ctx context.Context) error { return w.Set(21) }, w)
		if v, err := y.Get(ctx); v != 42 || err != nil {
			t.Errorf("got %v, %v", v, err)
		}
		w = x.Write()
		r, wy = x.Read(), y.Write()
		boom := errors.New("boom")
		async.Go(ctx, "double", func(ctx context.Context) error {
			_, err := r.Await(ctx)
			return err
		}, r, wy)
		async.Go(ctx, "fails", func(ctx context.Context) error { return boom }, w)
		if _, err := y.Get(ctx); !errors.Is(err, boom) || !errors.Is(err, weir.ErrPoisoned) {
			t.Errorf("got %v", err)
		} else {
			t.Log(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

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
