// Package garbage runs Go's collector and waits, within bounds, for the
// finalizers that it found. Finalizers are anybody's, and one of them may wait
// for the very goroutine that waits here, so no wait is without end.
package garbage

import (
	goruntime "runtime"
	"time"
)

// patience is how long finalizers get: on a busy machine their goroutine may not
// run for long, and giving up early leaves garbage that counts as live.
const patience = time.Second

// Round runs the collector once and waits, for at most a second, until the
// finalizers that it found have run; false if they had not.
func Round() bool {
	set, done := make(chan struct{}), make(chan struct{})
	go func() { // whose stack, unlike the caller's, can't keep the sentinel
		goruntime.SetFinalizer(&[16]byte{}, func(*[16]byte) { close(done) })
		close(set)
	}()
	<-set
	goruntime.GC()
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
		return false
	}
}

// All collects everything that is unreachable. Finalizers run in batches, and a
// batch may begin while the collection that filled it still sweeps; the third
// round's are in a later batch than anything that the first collection found.
// It gives up when finalizers do not come to an end.
func All() {
	late := 0
	for done := 0; done < 3; {
		if Round() {
			done++
		} else if late++; late == 2 { // once is a stale word on a stack that kept the sentinel
			return
		}
	}
}
