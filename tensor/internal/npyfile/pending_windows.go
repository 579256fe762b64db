package npyfile

import (
	"errors"
	"os"
	"path/filepath"
)

// pending does what renameio, which has nothing for Windows, does elsewhere.
// There the renaming replaces target, but the system doesn't promise that it is
// atomic.
type pending struct {
	*os.File
	target string
	placed bool
}

func newPending(target string) (*pending, error) {
	f, err := os.CreateTemp(filepath.Dir(target), "."+filepath.Base(target))
	if err != nil {
		return nil, err
	}
	return &pending{File: f, target: target}, nil
}

func (p *pending) CloseAtomicallyReplace() error {
	if err := errors.Join(p.Sync(), p.Close()); err != nil {
		return err
	}
	if err := os.Rename(p.Name(), p.target); err != nil {
		return err
	}
	p.placed = true
	return nil
}

func (p *pending) Cleanup() error {
	if p.placed {
		return nil
	}
	p.Close() // again, perhaps; the file can't be removed while it is open
	return os.Remove(p.Name())
}
