package callers

import (
	"fmt"
	goruntime "runtime"
	"strings"
)

// Site is a place in the user's code, cheap to take and dear to render: the
// return addresses of two frames. The zero Site is no place.
type Site struct{ inner, outer uintptr }

// At makes a Site of what PCs answers.
func At(inner, outer uintptr) Site { return Site{inner, outer} }

// String is "file.go:12" of the innermost frame outside Weir's packages, or of
// the inner one if both are inside; "" of the zero Site.
func (s Site) String() string {
	f, ok := s.frame()
	if !ok {
		return ""
	}
	return fmt.Sprintf("%s:%d", f.File, f.Line)
}

func (s Site) frame() (found goruntime.Frame, ok bool) {
	for _, pc := range [...]uintptr{s.inner, s.outer} {
		if pc == 0 {
			continue
		}
		frames := goruntime.CallersFrames([]uintptr{pc, 0}) // of one alone, inlined frames are not told
		for more := true; more; {
			var f goruntime.Frame
			if f, more = frames.Next(); f.PC == 0 {
				break
			}
			if !inside(f) {
				return f, true
			}
			if !ok {
				found, ok = f, true
			}
		}
	}
	return found, ok
}

// inside says whether a frame is Weir's own; its tests, commands and examples
// count as users.
func inside(f goruntime.Frame) bool {
	return strings.HasPrefix(f.Function, module) && !strings.HasSuffix(f.File, "_test.go") &&
		!strings.HasPrefix(f.Function, module+"examples/") && !strings.HasPrefix(f.Function, module+"cmd/")
}
