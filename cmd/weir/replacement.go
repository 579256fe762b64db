package main

import (
	"errors"
	"io"
	"os"
)

// replacement is a file that is written beside the one that it is to replace, as
// FILE.partial, so that no failure and no interrupt costs what was there before.
type replacement struct {
	*os.File
	target string
}

// newReplacement begins to replace path. A partial file that an earlier run has
// left is overwritten.
func newReplacement(path string) (*replacement, error) {
	if err := checkPlace(path); err != nil {
		return nil, err
	}
	target := destination(path)
	mode := os.FileMode(0o666)
	if info, err := os.Stat(target); err == nil {
		mode = info.Mode().Perm()
	}
	f, err := os.OpenFile(target+".partial", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return nil, err
	}
	return &replacement{f, target}, nil
}

// place puts the file where it belongs, at once.
func (r *replacement) place() error {
	if err := errors.Join(r.Sync(), r.Close()); err != nil {
		return err
	}
	return os.Rename(r.Name(), r.target)
}

// replace writes path anew. A failure leaves it as it was, and nothing else.
func replace(path string, write func(io.Writer) error) error {
	r, err := newReplacement(path)
	if err != nil {
		return err
	}
	if err := write(r); err != nil {
		return errors.Join(err, r.Close(), os.Remove(r.Name()))
	}
	return r.place()
}
