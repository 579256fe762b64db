//go:build !windows

package npyfile

import (
	"path/filepath"

	"github.com/google/renameio/v2"
)

// newPending makes a temporary file that is to replace target. It must be in
// target's own folder: renameio would prefer the system's temporary one.
func newPending(target string) (*renameio.PendingFile, error) {
	return renameio.NewPendingFile(target, renameio.WithTempDir(filepath.Dir(target)),
		renameio.WithPermissions(0o666), renameio.WithExistingPermissions())
}
