package hostblas

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Panic is what a product panics with on its caller's goroutine when one of its
// helpers panicked on another. A panic there would end the process, whatever
// the caller recovers from.
type Panic struct {
	Value   any       // what the helper panicked with
	Callers []uintptr // the helper's stack from the panic on, as runtime.Callers answers it
	Stack   []byte    // and as text
}

func (p *Panic) String() string {
	return fmt.Sprintf("%v\n\nof a helper of a product:\n%s", p.Value, p.Stack)
}

// keepPanic recovers a helper and keeps the first panic for join.
func (s *Scratch) keepPanic() {
	r := recover()
	if r == nil {
		return
	}
	pcs := make([]uintptr, 64)
	p := &Panic{Value: r, Callers: pcs[:runtime.Callers(2, pcs)], Stack: debug.Stack()}
	s.panicked.CompareAndSwap(nil, p)
}

// join waits for the helpers and panics if one of them did.
func (s *Scratch) join() {
	s.done.Wait()
	if p := s.panicked.Swap(nil); p != nil {
		panic(p)
	}
}
