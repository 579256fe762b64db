package npyfile

import (
	"bytes"
	"context"
	"errors"
	"io"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/weirgo/weir/dtype"
)

func TestReadDataTakesWhatAReaderGivesPieceByPiece(t *testing.T) {
	h := &Header{DType: dtype.Complex64, Shape: []int64{2}, BigEndian: true, DataBytes: 16}
	dst := make([]byte, 16)
	if err := ReadData(t.Context(), iotest.OneByteReader(bytes.NewReader([]byte("abcdefghijklmnop"))), h, dst, "x.npy"); err != nil {
		t.Fatal(err)
	}
	if string(dst) != "dcbahgfelkjiponm" {
		t.Errorf("%s", dst)
	}
}

func TestReadDataSwapsAcrossChunks(t *testing.T) {
	const size = 2*chunk + 24
	file := make([]byte, size)
	for i := range file {
		file[i] = byte(i*7 + i/256)
	}
	h := &Header{DType: dtype.Float64, Shape: []int64{size / 8}, BigEndian: true, DataBytes: size}
	dst := make([]byte, size)
	if err := ReadData(t.Context(), bytes.NewReader(file), h, dst, "x.npy"); err != nil {
		t.Fatal(err)
	}
	for i := range dst {
		if want := file[i/8*8+7-i%8]; dst[i] != want {
			t.Fatalf("byte %d is %d; expected %d", i, dst[i], want)
		}
	}
}

func TestReadDataRefusesMemoryOfAnotherSize(t *testing.T) {
	h := &Header{DType: dtype.Float32, Shape: []int64{2, 3}, DataBytes: 24}
	err := ReadData(t.Context(), bytes.NewReader(make([]byte, 24)), h, make([]byte, 23), "x.npy")
	wantError(t, err, "x.npy: memory of 23 bytes; expected 24 for shape (2, 3) of float32")
}

func TestReadDataRefusesAStreamThatEndsEarly(t *testing.T) {
	h := &Header{DType: dtype.Float32, Shape: []int64{2, 3}, DataBytes: 24}
	err := ReadData(t.Context(), bytes.NewReader(make([]byte, 23)), h, make([]byte, 24), "x.npy")
	wantError(t, err, "x.npy: truncated: holds 23 bytes of data; expected 24 for shape (2, 3) of float32")
	r := io.MultiReader(bytes.NewReader(make([]byte, 5)), iotest.ErrReader(syscall.EIO))
	err = ReadData(t.Context(), r, h, make([]byte, 24), "x.npy")
	wantError(t, err, "x.npy: cannot be read after 5 of 24 bytes of data: input/output error")
}

// cancelAfter is a reader and writer that ends a context when it has passed n
// bytes.
type cancelAfter struct {
	n      int
	cancel context.CancelFunc
}

func (c *cancelAfter) pass(b []byte) (int, error) {
	if c.n -= len(b); c.n <= 0 {
		c.cancel()
	}
	return len(b), nil
}

func (c *cancelAfter) Read(b []byte) (int, error)  { return c.pass(b) }
func (c *cancelAfter) Write(b []byte) (int, error) { return c.pass(b) }

func TestReadDataStopsBetweenChunks(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	h := &Header{DType: dtype.Int64, Shape: []int64{chunk}, DataBytes: 8 * chunk}
	err := ReadData(ctx, &cancelAfter{2 * chunk, cancel}, h, make([]byte, 8*chunk), "x.npy")
	if want := "npy: x.npy: stopped after reading 2097152 of 8388608 bytes: context canceled"; err == nil || err.Error() != want {
		t.Errorf("error %v; expected %s", err, want)
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v does not match context.Canceled", err)
	}
}
