//go:build cuda

package bench

import (
	"cmp"
	"path/filepath"
	"strings"

	"github.com/weirgo/weir/internal/driver/cuda"
)

// gpuLibraries are the files that were loaded. What their names link to has the
// versions of the driver and the libraries, where the maker's installer put them.
func gpuLibraries() string {
	var all []string
	for _, l := range cuda.Libraries() {
		path := cmp.Or(l.Path, l.Reason)
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real
		}
		all = append(all, l.Name+" "+path)
	}
	return strings.Join(all, ", ")
}
