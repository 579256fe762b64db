package kit

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/weirgo/weir/csrc/compat"
	"github.com/weirgo/weir/csrc/lazy"
)

// Kit is a finished kit.
type Kit struct{ root string }

// Root is the kit's folder, an absolute path.
func (k Kit) Root() string { return k.root }

// Include is the folder that comes first in the compiler's include path.
func (k Kit) Include() string { return filepath.Join(k.root, "include") }

// Lib is the folder that comes first where the linker looks for libraries.
func (k Kit) Lib() string { return filepath.Join(k.root, "lib") }

// Make answers the kit for an architecture ("amd64" or "arm64") below the
// folder parent, and builds it if it is not there. compiler is the C compiler
// with its arguments, as lazy.Build has it.
func Make(ctx context.Context, parent, arch string, compiler []string) (Kit, error) {
	parent, err := filepath.Abs(parent)
	if err != nil {
		return Kit{}, err
	}
	libraries := lazy.Libraries()
	sources, err := lazy.Sources(libraries, arch)
	if err != nil {
		return Kit{}, err
	}
	hash := sha256.New()
	fmt.Fprintf(hash, "%q %q %q", arch, lazy.Flags, compat.Header)
	for _, f := range sources {
		fmt.Fprintf(hash, " %q %q", f.Name, f.Text)
	}
	k := Kit{filepath.Join(parent, fmt.Sprintf("kit-%s-%.8x", arch, hash.Sum(nil)))}
	if _, err := os.Stat(k.root); err == nil {
		return k, nil
	}

	if err := os.MkdirAll(parent, 0o755); err != nil {
		return Kit{}, err
	}
	work, err := os.MkdirTemp(parent, ".kit-")
	if err != nil {
		return Kit{}, err
	}
	defer os.RemoveAll(work)
	unfinished := Kit{filepath.Join(work, "kit")}
	for _, folder := range []string{unfinished.Include(), unfinished.Lib()} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return Kit{}, err
		}
	}
	for name, text := range map[string]string{"cuda.h": compat.Header, "weir_lazy.h": lazy.Header()} {
		if err := os.WriteFile(filepath.Join(unfinished.Include(), name), []byte(text), 0o644); err != nil {
			return Kit{}, err
		}
	}
	if err := lazy.Build(ctx, unfinished.Lib(), libraries, arch, compiler); err != nil {
		return Kit{}, err
	}
	if err := os.Rename(unfinished.root, k.root); err != nil && !errors.Is(err, fs.ErrExist) {
		return Kit{}, err
	}
	return k, nil
}
