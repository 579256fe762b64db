package bench

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/weirgo/weir/runtime"
)

func TestMain(m *testing.M) {
	if isFakePeer() {
		fakePeer()
		return
	}
	goleak.VerifyTestMain(m)
}

// start installs a runtime for the test, on the host device, and answers its
// resources.
func start(t *testing.T) *runtime.Resources {
	t.Helper()
	return startWith(t, runtime.Options{Host: runtime.HostOnly})
}

// startWith installs a runtime for the test and answers its default device's
// resources.
func startWith(t *testing.T, o runtime.Options) *runtime.Resources {
	t.Helper()
	rt, err := runtime.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rt.Close(); err != nil {
			t.Errorf("closing the runtime: %v", err)
		}
	})
	return defaultResources(t)
}

func defaultResources(t *testing.T) *runtime.Resources {
	t.Helper()
	d, err := runtime.Default()
	if err != nil {
		t.Fatal(err)
	}
	r, err := runtime.For(d)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
