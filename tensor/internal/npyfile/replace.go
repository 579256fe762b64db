package npyfile

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// replace makes or replaces the file at path with what fill writes, in one step
// that happens only if fill succeeds and ctx has not ended. Wanted names the
// kind of file in messages. WriteFile documents the rules.
func replace(ctx context.Context, path, wanted string, fill func(io.Writer) error) error {
	if path == "" {
		return refuse(`""`, "empty path; expected a place for %s", wanted)
	}
	target, err := follow(path)
	if err != nil {
		return failed(path, err, "cannot be followed; expected a place for %s", wanted)
	}
	if err := replaceable(path, target, wanted); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return stopped(ctx, path, "stopped before writing")
	}
	temporary, err := newPending(target)
	if err != nil {
		return failed(path, err, "cannot make a temporary file in %s; expected a writable folder", filepath.Dir(target))
	}
	// After the renaming this does nothing; before it, an error of the removal
	// would hide the one that matters.
	defer temporary.Cleanup()
	if err := fill(temporary); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return stopped(ctx, path, "stopped before the new file took its place")
	}
	if err := temporary.CloseAtomicallyReplace(); err != nil {
		return failed(path, err, "the new file cannot take its place")
	}
	return nil
}

// follow answers the path that a chain of symbolic links ends at, whether or
// not something is there. Renaming onto the link itself would replace the link.
// Paths are joined without cleaning them: a/../b is not b when a is a link.
func follow(path string) (string, error) {
	for range 40 {
		info, err := os.Lstat(path)
		if err != nil || info.Mode()&os.ModeSymlink == 0 {
			return path, nil // what is wrong with path, making the file will say
		}
		next, err := os.Readlink(path)
		if err != nil {
			return "", err
		}
		if !filepath.IsAbs(next) {
			folder, _ := filepath.Split(path)
			next = folder + next
		}
		path = next
	}
	return "", &fs.PathError{Op: "readlink", Path: path, Err: syscall.ELOOP}
}

// replaceable checks that nothing is at target, or a regular file that may be
// written to. A renaming alone asks only for the right to change the folder.
func replaceable(path, target, wanted string) error {
	info, err := os.Stat(target)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return failed(path, err, "cannot be looked at; expected a place for %s", wanted)
	}
	if !info.Mode().IsRegular() {
		return refuse(path, "is a %s; expected a place for %s", fileKind(info.Mode()), wanted)
	}
	f, err := os.OpenFile(target, os.O_WRONLY, 0)
	if err != nil {
		return failed(path, err, "cannot be written; expected a writable file or none")
	}
	return closeOnce(f, path)
}
