package tensor

import (
	"context"
	"testing"

	"go.uber.org/goleak"

	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/host"
	"github.com/weirgo/weir/runtime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start installs a runtime over two host devices on which all work runs on
// goroutines of its own, and checks at the end that nothing leaked.
func start(t testing.TB, o ...func(*runtime.Options)) context.Context {
	t.Helper()
	return startOn(t, []driver.Family{host.New(host.Options{Devices: 2, HandOver: true})}, o...)
}

func startOn(t testing.TB, families []driver.Family, o ...func(*runtime.Options)) context.Context {
	t.Helper()
	options := runtime.Options{}
	for _, f := range o {
		f(&options)
	}
	rt, err := runtime.StartFamilies(families, options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, free := Scope(context.Background())
	t.Cleanup(func() {
		if err := free(); err != nil {
			t.Errorf("freeing the test's arrays: %v", err)
		}
		if err := rt.Close(); err != nil {
			t.Errorf("closing the runtime: %v", err)
		}
	})
	return ctx
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
