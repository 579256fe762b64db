package native

import (
	goruntime "runtime"
	"strings"
	"sync"
)

// stacks are for program counters.
var stacks = sync.Pool{New: func() any { return new([]uintptr) }}

// Where a job cannot be waited for: the goroutine that would wait is needed, by a
// library whose function has not returned, or by a device family.
const (
	aChecker = "github.com/weirgo/weir/native.(*Checker).Check"
	aDriver  = "github.com/weirgo/weir/internal/driver/"
)

// within says what the calling goroutine is inside of and must not wait in; "" if
// nothing. It looks at the goroutine's stack: to note it in each checked call would
// cost every call, and this costs only jobs, 0.3 µs.
func within() string {
	pcs := stacks.Get().(*[]uintptr)
	defer stacks.Put(pcs)
	if *pcs == nil {
		*pcs = make([]uintptr, 64)
	}
	n := goruntime.Callers(2, *pcs)
	for n == len(*pcs) {
		*pcs = make([]uintptr, 2*n)
		n = goruntime.Callers(2, *pcs)
	}
	for _, pc := range (*pcs)[:n] {
		name := goruntime.FuncForPC(pc - 1).Name()
		if name == aChecker {
			return "a checked call"
		}
		if strings.HasPrefix(name, aDriver) {
			return "a driver callback"
		}
	}
	return ""
}
