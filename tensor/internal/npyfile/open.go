package npyfile

import (
	"context"
	"errors"
	"io"
	"os"
)

// File is an open .npy file whose header has been read and whose size agrees
// with it.
type File struct {
	Header *Header
	name   string
	f      *os.File
}

// Open reads the header of a regular file and checks the file's size against
// it, so that Header.DataBytes is safe to allocate. The caller closes the File.
func Open(path string) (*File, error) {
	f, size, err := openRegular(path, "a .npy file")
	if err != nil {
		return nil, err
	}
	h, err := ReadHeader(f, path, size)
	if err != nil {
		f.Close() // nothing was written, so its error says nothing
		return nil, err
	}
	return &File{Header: h, name: path, f: f}, nil
}

// Read fills dst as ReadData does. It may be called more than once.
func (f *File) Read(ctx context.Context, dst []byte) error {
	return ReadData(ctx, io.NewSectionReader(f.f, f.Header.HeaderBytes, f.Header.DataBytes), f.Header, dst, f.name)
}

// Close closes the file; a second call does nothing.
func (f *File) Close() error { return closeOnce(f.f, f.name) }

// openRegular opens a regular file for reading. It looks before it opens: to
// open a pipe would wait for its writer.
func openRegular(path, wanted string) (*os.File, int64, error) {
	if path == "" {
		return nil, 0, refuse(`""`, "empty path; expected that of %s", wanted)
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, 0, failed(path, err, "cannot be opened; expected %s", wanted)
	}
	if !info.Mode().IsRegular() {
		return nil, 0, refuse(path, "is a %s; expected %s", fileKind(info.Mode()), wanted)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, failed(path, err, "cannot be opened; expected %s", wanted)
	}
	if info, err = f.Stat(); err != nil {
		f.Close()
		return nil, 0, failed(path, err, "cannot be opened; expected %s", wanted)
	}
	return f, info.Size(), nil
}

func closeOnce(f *os.File, name string) error {
	if err := f.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return failed(name, err, "cannot be closed")
	}
	return nil
}

// fileKind names what is not a regular file.
func fileKind(m os.FileMode) string {
	switch {
	case m.IsDir():
		return "directory"
	case m&os.ModeNamedPipe != 0:
		return "named pipe"
	case m&os.ModeSocket != 0:
		return "socket"
	case m&os.ModeDevice != 0:
		return "device"
	}
	return "special file"
}
