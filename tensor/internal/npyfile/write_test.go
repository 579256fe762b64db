package npyfile

import (
	"context"
	"errors"
	"io"
	"math"
	"testing"

	"github.com/weirgo/weir/dtype"
)

func TestWriteRefusesWhatIsNoArray(t *testing.T) {
	for _, c := range []struct {
		dt    dtype.DType
		shape []int64
		data  int
		text  string
	}{
		{dtype.DType(99), []int64{1}, 1, "dtype(99); expected one of " + known},
		{dtype.Float32, []int64{2, -1}, 0, "shape (2, -1) has a negative extent at axis 1; expected 0 or more"},
		{dtype.Float64, []int64{math.MaxInt64}, 0, "shape (9223372036854775807,) of float64 overflows; expected at most 9223372036854775807 bytes"},
		{dtype.Float32, make([]int64, 65), 0, "shape has 65 axes; expected at most 64"},
		{dtype.Float32, []int64{2, 3}, 25, "25 bytes of data; expected 24 for shape (2, 3) of float32"},
	} {
		err := Write(t.Context(), io.Discard, "x.npy", c.dt, c.shape, false, make([]byte, c.data))
		wantError(t, err, "x.npy: "+c.text)
	}
}

func TestWriteStopsBetweenChunks(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	err := Write(ctx, &cancelAfter{128 + chunk, cancel}, "x.npy", dtype.Int64, []int64{chunk}, false, make([]byte, 8*chunk))
	if want := "npy: x.npy: stopped after writing 1048704 of 8388736 bytes: context canceled"; err == nil || err.Error() != want {
		t.Errorf("error %v; expected %s", err, want)
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v does not match context.Canceled", err)
	}
}

// shortWriter takes n bytes and then no more, without saying so.
type shortWriter struct{ n int }

func (w *shortWriter) Write(b []byte) (int, error) {
	n := min(len(b), w.n)
	w.n -= n
	return n, nil
}

func TestWriteRefusesAWriterThatTakesLess(t *testing.T) {
	err := Write(t.Context(), &shortWriter{150}, "x.npy", dtype.Float32, []int64{6}, false, make([]byte, 24))
	wantError(t, err, "x.npy: written only 150 of 152 bytes: short write")
}
