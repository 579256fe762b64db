package npyfile

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/sbinet/npyio/npy"

	"github.com/weirgo/weir/dtype"
)

// Write writes one array, as NumPy's np.save does byte for byte: format 1.0,
// little-endian. Data holds the elements, little-endian, in C or Fortran order;
// a shape that both orders lay out alike is marked C. Errors call the output
// name. A failed or cancelled Write leaves a part of the array in w.
func Write(ctx context.Context, w io.Writer, name string, dt dtype.DType, shape []int64, fortran bool, data []byte) error {
	head, err := header(name, dt, shape, fortran, data)
	if err != nil {
		return err
	}
	return stream(ctx, w, name, head, data)
}

// WriteFile writes one array to path, as Write does. The array is written to a
// temporary file in the same folder, synced, and renamed, so that at any moment
// path is either the old file or the whole new one; on any failure, and when
// ctx ends, path is as it was and the temporary file is gone.
//
// An existing file must be writable and keeps its permissions, but not its
// owner and other hard links; a new one gets 0666 less the umask. Through a
// symbolic link the file that it points to is replaced, or made. What is not a
// regular file is refused.
func WriteFile(ctx context.Context, path string, dt dtype.DType, shape []int64, fortran bool, data []byte) error {
	head, err := header(path, dt, shape, fortran, data)
	if err != nil {
		return err
	}
	return replace(ctx, path, "a .npy file", func(w io.Writer) error {
		return stream(ctx, w, path, head, data)
	})
}

// header checks what is to be written and makes everything that precedes the
// data.
func header(name string, dt dtype.DType, shape []int64, fortran bool, data []byte) ([]byte, error) {
	if !dt.Valid() {
		return nil, refuse(name, "%v; expected one of %s", dt, supported())
	}
	size, err := byteSize(dt, shape)
	if err != nil {
		return nil, refuse(name, "%v", err)
	}
	if int64(len(data)) != size {
		return nil, refuse(name, "%d bytes of data; expected %d for shape %s of %v", len(data), size, tuple(shape), dt)
	}
	order := "False"
	if fortran && !oneOrder(shape) {
		order = "True"
	}
	text := fmt.Sprintf("{'descr': '<%s', 'fortran_order': %s, 'shape': %s, }", codes[dt], order, tuple(shape))
	// NumPy leaves room for the slowest extent to grow to 21 digits in place,
	// then fills up with blanks and a line end, so that the data are aligned.
	if len(shape) > 0 {
		slowest := shape[0]
		if order == "True" {
			slowest = shape[len(shape)-1]
		}
		text += strings.Repeat(" ", 21-len(strconv.FormatInt(slowest, 10)))
	}
	const preamble, alignment = 10, 64
	pad := alignment - (preamble+len(text)+1)%alignment
	text += strings.Repeat(" ", pad) + "\n"

	b := append([]byte(nil), npy.Magic[:]...)
	b = append(b, 1, 0)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(text))) // 64 axes need far less than 65535
	return append(b, text...), nil
}

// stream writes head and data in chunks.
func stream(ctx context.Context, w io.Writer, name string, head, data []byte) error {
	total, done := len(head)+len(data), 0
	for _, part := range [][]byte{head, data} {
		for len(part) > 0 {
			if ctx.Err() != nil {
				return stopped(ctx, name, "stopped after writing %d of %d bytes", done, total)
			}
			piece := part[:min(chunk, len(part))]
			n, err := w.Write(piece)
			if err == nil && n < len(piece) {
				err = io.ErrShortWrite
			}
			if err != nil {
				return failed(name, err, "written only %d of %d bytes", done+n, total)
			}
			done, part = done+n, part[n:]
		}
	}
	return nil
}
