// Package callers renders where the user's code called Weir.
package callers

import (
	"fmt"
	goruntime "runtime"
	"strings"
)

const module = "github.com/weirgo/weir/"

// Stack is the calling goroutine's stack from the innermost frame outside
// Weir's packages on, each frame's function, file and line. Weir's tests count
// as users. Of a stack that never leaves them it is all.
func Stack() string {
	pcs := make([]uintptr, 48)
	frames := goruntime.CallersFrames(pcs[:goruntime.Callers(2, pcs)])
	var all, outside strings.Builder
	left := false
	for {
		f, more := frames.Next()
		left = left || !strings.HasPrefix(f.Function, module) && !strings.HasPrefix(f.Function, "runtime.") || strings.HasSuffix(f.File, "_test.go")
		line := fmt.Sprintf("%s\n\t%s:%d\n", f.Function, f.File, f.Line)
		all.WriteString(line)
		if left {
			outside.WriteString(line)
		}
		if !more {
			break
		}
	}
	if outside.Len() == 0 {
		return all.String()
	}
	return outside.String()
}
