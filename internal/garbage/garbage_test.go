package garbage

import (
	goruntime "runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAllRunsTheFinalizersOfWhatIsUnreachable(t *testing.T) {
	var ran atomic.Int64
	const many = 1000
	for range many {
		goruntime.SetFinalizer(&[32]byte{}, func(*[32]byte) { ran.Add(1) })
	}
	All()
	if n := ran.Load(); n < many-1 { // the last may still lie on the stack
		t.Errorf("%d of %d finalizers have run", n, many)
	}
}

func TestAFinalizerThatWaitsForTheCallerDoesNotHangIt(t *testing.T) {
	var mu sync.Mutex
	mu.Lock()
	ran := make(chan struct{})
	goruntime.SetFinalizer(&[32]byte{}, func(*[32]byte) { mu.Lock(); defer mu.Unlock(); close(ran) })
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		All() // while mu is held
	}()
	select {
	case <-returned:
	case <-time.After(time.Minute):
		t.Error("All waits for a finalizer that waits for its caller")
	}
	mu.Unlock()
	<-ran
	<-returned
}
