package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/weirgo/weir"
)

// checkPlace refuses, before any work is done for it, an output file that could
// not be written: its folder must exist and take files, and what is there
// already must be a file that may be replaced. It changes nothing.
func checkPlace(path string) error {
	real := destination(path)
	folder := filepath.Dir(real)
	switch info, err := os.Stat(folder); {
	case errors.Is(err, fs.ErrNotExist):
		return noPlace(path, nil, "folder %s does not exist; expected a writable folder", folder)
	case err != nil:
		return noPlace(path, err, "folder %s cannot be looked at; expected a writable folder", folder)
	case !info.IsDir():
		return noPlace(path, nil, "%s is not a folder; expected a writable folder", folder)
	}
	switch info, err := os.Stat(real); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return noPlace(path, err, "cannot be looked at; expected a writable file or none")
	case !info.Mode().IsRegular():
		return noPlace(path, nil, "is not a regular file; expected a writable file or none")
	default:
		f, err := os.OpenFile(real, os.O_WRONLY, 0)
		if err != nil {
			return noPlace(path, err, "cannot be written; expected a writable file or none")
		}
		if err := f.Close(); err != nil {
			return noPlace(path, err, "cannot be closed")
		}
	}
	probe, err := os.CreateTemp(folder, ".weir-*")
	if err != nil {
		return noPlace(path, err, "folder %s takes no files; expected a writable folder", folder)
	}
	if err := errors.Join(probe.Close(), os.Remove(probe.Name())); err != nil {
		return noPlace(path, err, "folder %s does not give files up; expected a writable folder", folder)
	}
	return nil
}

// destination is the file that is replaced: what path links to, even if that is
// not there yet.
func destination(path string) string {
	const links = 40 // as many as the system follows
	for range links {
		target, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		path = target
	}
	return path
}

// sameFile says whether two paths are of one file, be it there yet or not.
func sameFile(a, b string) bool {
	a, b = destination(a), destination(b)
	one, err := os.Stat(a)
	other, err2 := os.Stat(b)
	return filepath.Clean(a) == filepath.Clean(b) || err == nil && err2 == nil && os.SameFile(one, other)
}

func noPlace(path string, cause error, format string, args ...any) error {
	e := weir.Argf("output", "%s: %s", path, fmt.Sprintf(format, args...))
	if cause != nil {
		if p, ok := errors.AsType[*fs.PathError](cause); ok {
			cause = p.Err // the message names the path
		}
		e.Message += ": " + cause.Error()
	}
	return e
}
