package npyfile

import (
	"context"
	"encoding/binary"
	"io"
	"math/bits"
)

// chunk is what is read or written between two looks at the context. Every
// element size divides it.
const chunk = 1 << 20

// ReadData fills dst, whose length is h.DataBytes, with the elements that r is
// at: little-endian whatever the file's byte order, bit for bit (payloads of
// NaN included), in the file's memory order. The bytes are read and swapped in
// place, so that nothing is held twice.
func ReadData(ctx context.Context, r io.Reader, h *Header, dst []byte, name string) error {
	if int64(len(dst)) != h.DataBytes {
		return refuse(name, "memory of %d bytes; expected %d for shape %s of %v", len(dst), h.DataBytes, tuple(h.Shape), h.DType)
	}
	for at := 0; at < len(dst); {
		if ctx.Err() != nil {
			return stopped(ctx, name, "stopped after reading %d of %d bytes", at, len(dst))
		}
		part := dst[at:min(at+chunk, len(dst))]
		n, err := readFull(r, part)
		if err != nil {
			return failed(name, err, "cannot be read after %d of %d bytes of data", at+n, len(dst))
		}
		if n < len(part) {
			return refuse(name, "truncated: holds %d bytes of data; expected %d for shape %s of %v", at+n, len(dst), tuple(h.Shape), h.DType)
		}
		if h.BigEndian {
			width := h.DType.Size()
			if h.DType.IsComplex() {
				width /= 2
			}
			swap(part, width)
		}
		at += n
	}
	return nil
}

// swap reverses the bytes of every number of this width: 2, 4 or 8.
func swap(b []byte, width int64) {
	little := binary.LittleEndian
	switch width {
	case 2:
		for ; len(b) >= 2; b = b[2:] {
			little.PutUint16(b, bits.ReverseBytes16(little.Uint16(b)))
		}
	case 4:
		for ; len(b) >= 4; b = b[4:] {
			little.PutUint32(b, bits.ReverseBytes32(little.Uint32(b)))
		}
	case 8:
		for ; len(b) >= 8; b = b[8:] {
			little.PutUint64(b, bits.ReverseBytes64(little.Uint64(b)))
		}
	}
}
