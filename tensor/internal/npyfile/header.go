package npyfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"

	"github.com/sbinet/npyio/npy"

	"github.com/weirgo/weir/dtype"
)

// maxHeader bounds the text of a header, and so what a hostile length can make
// a reader allocate. NumPy's own reader stops at 10000 bytes; some writers pad.
const maxHeader = 1 << 16

// Header says what a .npy file holds.
type Header struct {
	DType       dtype.DType
	Shape       []int64 // empty for a scalar
	Fortran     bool    // the first axis is the fastest
	BigEndian   bool    // in the file; ReadData gives little-endian elements
	HeaderBytes int64   // where the data begin
	DataBytes   int64
}

// Elements is the product of the extents.
func (h *Header) Elements() int64 { return h.DataBytes / h.DType.Size() }

// ReadHeader reads the header of a .npy file of format version 1.0, 2.0 or 3.0
// and leaves r at the first byte of data. Errors call the file name. With size,
// the file's length in bytes, a file that holds less or more data than its
// header says is refused; without it (-1) DataBytes is only what the header
// claims. At most 64 KiB are allocated.
//
// The format is that of NumPy's NEP 1 and of numpy.lib.format.
func ReadHeader(r io.Reader, name string, size int64) (*Header, error) {
	text, begin, err := readText(r, name, size)
	if err != nil {
		return nil, err
	}
	d, err := parseDict(text)
	if s, ok := errors.AsType[*structuredError](err); ok {
		return nil, refuse(name, `elements are of structured dtype %s; expected one of %s; save each field on its own, as a["field"]`, s.text, supported())
	}
	if err != nil {
		return nil, refuse(name, "malformed header: %v", err)
	}
	h := &Header{Shape: d.shape, Fortran: d.fortran, HeaderBytes: begin}
	if h.DType, h.BigEndian, err = parseDescr(d.descr); err != nil {
		return nil, refuse(name, "%v", err)
	}
	if h.DataBytes, err = byteSize(h.DType, h.Shape); err != nil {
		return nil, refuse(name, "%v", err)
	}
	if size < 0 {
		return h, nil
	}
	switch holds := size - begin; {
	case holds < h.DataBytes:
		return nil, refuse(name, "truncated: holds %d bytes of data; expected %d for shape %s of %v", holds, h.DataBytes, tuple(h.Shape), h.DType)
	case holds > h.DataBytes:
		return nil, refuse(name, "oversized: holds %d bytes of data, %d more than the %d expected for shape %s of %v", holds, holds-h.DataBytes, h.DataBytes, tuple(h.Shape), h.DType)
	}
	return h, nil
}

// readText reads magic string, version and length, and answers the dictionary's
// text and the offset of the data after it.
func readText(r io.Reader, name string, size int64) (text []byte, begin int64, err error) {
	var head [12]byte
	n, err := readFull(r, head[:8])
	if err != nil {
		return nil, 0, failed(name, err, "cannot be read")
	}
	magic := head[:min(n, len(npy.Magic))]
	switch {
	case n == 0:
		return nil, 0, refuse(name, "empty; expected a NumPy array")
	case !bytes.HasPrefix(npy.Magic[:], magic):
		return nil, 0, refuse(name, "begins with %q; expected %q, a NumPy array%s", head[:n], npy.Magic[:], looksLike(head[:n]))
	case n < 8:
		return nil, 0, truncated(name, n)
	}
	major, minor := head[6], head[7]
	if major < 1 || major > 3 || minor != 0 {
		return nil, 0, refuse(name, "format version %d.%d; expected 1.0, 2.0 or 3.0", major, minor)
	}
	width := 4
	if major == 1 {
		width = 2
	}
	n, err = readFull(r, head[8:8+width])
	if err != nil {
		return nil, 0, failed(name, err, "cannot be read")
	}
	if n < width {
		return nil, 0, truncated(name, 8+n)
	}
	length := int64(binary.LittleEndian.Uint32(head[8:])) // bytes not read are zero
	begin = int64(8+width) + length
	if length > maxHeader {
		return nil, 0, refuse(name, "header of %d bytes; expected at most %d", length, maxHeader)
	}
	if size >= 0 && size < begin {
		return nil, 0, refuse(name, "truncated: ends after %d bytes; expected a header of %d", size, begin)
	}
	text = make([]byte, length)
	n, err = readFull(r, text)
	if err != nil {
		return nil, 0, failed(name, err, "cannot be read")
	}
	if n < len(text) {
		return nil, 0, refuse(name, "truncated: ends after %d bytes; expected a header of %d", 8+width+n, begin)
	}
	return text, begin, nil
}

func truncated(name string, at int) error {
	return refuse(name, "truncated: ends after %d bytes; expected a whole header", at)
}

// readFull is io.ReadFull, but the end of r is not an error.
func readFull(r io.Reader, b []byte) (int, error) {
	n, err := io.ReadFull(r, b)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = nil
	}
	return n, err
}
