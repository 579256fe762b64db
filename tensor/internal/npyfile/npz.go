package npyfile

import (
	"archive/zip"
	"context"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
)

// Archive is an open .npz file.
type Archive struct {
	Entries []*Entry // in the archive's order
	name    string
	f       *os.File
}

// Entry is one array of an archive.
type Entry struct {
	Name  string // without .npy
	where string // for messages
	file  *zip.File
}

// ReadNPZ opens an archive and lists its arrays, stored or deflated; none is
// read. An archive whose entries can't be what they claim is refused as a
// whole, so that what its arrays allocate in all is at most 1032 times the
// file's size. The caller closes the Archive.
func ReadNPZ(path string) (*Archive, error) {
	f, size, err := openRegular(path, "a .npz file")
	if err != nil {
		return nil, err
	}
	entries, err := list(f, size, path)
	if err != nil {
		f.Close() // nothing was written, so its error says nothing
		return nil, err
	}
	return &Archive{Entries: entries, name: path, f: f}, nil
}

// Close closes the archive; its entries can't be read any more. A second call
// does nothing.
func (a *Archive) Close() error { return closeOnce(a.f, a.name) }

// list reads an archive's directory.
func list(r io.ReaderAt, size int64, name string) ([]*Entry, error) {
	if size == 0 {
		return nil, refuse(name, "empty; expected a zip archive of arrays")
	}
	z, err := zip.NewReader(r, size)
	if errors.Is(err, zip.ErrFormat) {
		var head [8]byte
		n, err := r.ReadAt(head[:], 0)
		if err != nil && err != io.EOF {
			return nil, failed(name, err, "cannot be read")
		}
		if strings.HasPrefix(string(head[:n]), "PK") {
			return nil, refuse(name, "damaged or truncated zip archive; expected a whole .npz file")
		}
		return nil, refuse(name, `begins with %q; expected "PK", a zip archive of arrays%s`, head[:n], looksLike(head[:n]))
	}
	if err != nil {
		return nil, failed(name, err, "cannot be read as a zip archive")
	}
	if err := checkMembers(z.File, size, name); err != nil {
		return nil, err
	}
	entries := []*Entry{}
	seen := map[string]bool{}
	for _, file := range z.File {
		if strings.HasSuffix(file.Name, "/") {
			continue // a folder
		}
		e := &Entry{Name: strings.TrimSuffix(file.Name, ".npy"), where: member(name, file.Name), file: file}
		if seen[e.Name] {
			return nil, refuse(e.where, "given twice; expected each name once")
		}
		seen[e.Name] = true
		entries = append(entries, e)
	}
	return entries, nil
}

// member calls one array of an archive by name.
func member(archive, file string) string { return archive + ", array " + quoteName(file) }

func quoteName(file string) string { return strconv.Quote(strings.TrimSuffix(file, ".npy")) }

// Header reads and checks the array's header. DataBytes is then safe to
// allocate.
func (e *Entry) Header() (*Header, error) {
	h, r, err := e.open()
	if err != nil {
		return nil, err
	}
	r.Close() // ends a decoder in memory, which can't fail
	return h, nil
}

// Read fills dst as ReadData does, and checks the array's checksum. It may be
// called more than once.
func (e *Entry) Read(ctx context.Context, dst []byte) error {
	h, r, err := e.open()
	if err != nil {
		return err
	}
	defer r.Close()
	if err := ReadData(ctx, r, h, dst, e.where); err != nil {
		return err
	}
	// The checksum is compared where the stream ends.
	switch _, err := io.ReadFull(r, make([]byte, 1)); {
	case err == io.EOF:
		return nil
	case errors.Is(err, zip.ErrChecksum):
		return refuse(e.where, "damaged: its bytes do not match their checksum")
	}
	return refuse(e.where, "damaged: does not end after its %d bytes", e.file.UncompressedSize64)
}

// open answers the header, and a reader at the first byte of data.
func (e *Entry) open() (*Header, io.ReadCloser, error) {
	r, err := e.file.Open()
	if err != nil {
		return nil, nil, failed(e.where, err, "cannot be opened in the archive")
	}
	h, err := ReadHeader(r, e.where, int64(e.file.UncompressedSize64))
	if err != nil {
		r.Close()
		return nil, nil, err
	}
	return h, r, nil
}
