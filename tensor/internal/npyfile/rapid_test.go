package npyfile

import (
	"bytes"
	"context"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirgo/weir/dtype"
)

func drawArray(r *rapid.T) Named {
	a := Named{
		DType:   rapid.SampledFrom(dtype.All()).Draw(r, "dtype"),
		Shape:   rapid.SliceOfN(rapid.Int64Range(0, 4), 0, 5).Draw(r, "shape"),
		Fortran: rapid.Bool().Draw(r, "fortran"),
	}
	size := a.DType.Size()
	for _, n := range a.Shape {
		size *= n
	}
	a.Data = make([]byte, size)
	seed := rapid.Uint64().Draw(r, "seed")
	for i := range a.Data {
		seed = seed*6364136223846793005 + 1442695040888963407
		a.Data[i] = byte(seed >> 56)
	}
	return a
}

// same says whether a file holds the array: where both orders are alike, the
// mark is C.
func same(h *Header, data []byte, a Named) bool {
	long := 0
	for _, n := range a.Shape {
		if n > 1 {
			long++
		}
	}
	fortran := a.Fortran && long > 1 && len(a.Data) > 0
	return h.DType == a.DType && slices.Equal(h.Shape, a.Shape) && h.Fortran == fortran && bytes.Equal(data, a.Data)
}

// reversed turns every number of the file's data around, one byte at a time.
func reversed(data []byte, dt dtype.DType) []byte {
	width := int(dt.Size())
	if dt.IsComplex() {
		width /= 2
	}
	out := make([]byte, len(data))
	for i := range data {
		out[i] = data[i/width*width+width-1-i%width]
	}
	return out
}

func TestEveryArrayRoundTrips(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		a := drawArray(r)
		var file bytes.Buffer
		if err := Write(context.Background(), &file, "x.npy", a.DType, a.Shape, a.Fortran, a.Data); err != nil {
			r.Fatal(err)
		}
		begin := file.Len() - len(a.Data)
		if begin%64 != 0 {
			r.Errorf("data begin at %d", begin)
		}
		h, data := readAll(t, file.Bytes())
		if !same(h, data, a) {
			r.Errorf("%+v became %+v %x", a, *h, data)
		}
		// The same array as a big-endian machine would have written it.
		big := bytes.Replace(file.Bytes()[:begin], []byte("'<"), []byte("'>"), 1)
		h, data = readAll(t, append(big, reversed(a.Data, a.DType)...))
		if !h.BigEndian || !same(h, data, a) {
			r.Errorf("%+v became, by way of a big-endian file, %+v %x", a, *h, data)
		}
	})
}

func TestEveryArchiveRoundTrips(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.npz")
	rapid.Check(t, func(r *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.StringN(1, -1, 40), 0, 4, rapid.ID[string]).Draw(r, "names")
		var arrays []Named
		for _, name := range names {
			a := drawArray(r)
			a.Name = name
			arrays = append(arrays, a)
		}
		if err := WriteNPZ(context.Background(), path, arrays); err != nil {
			r.Fatal(err)
		}
		archive, err := ReadNPZ(path)
		if err != nil {
			r.Fatal(err)
		}
		defer archive.Close()
		if len(archive.Entries) != len(arrays) {
			r.Fatalf("%d arrays; expected %d", len(archive.Entries), len(arrays))
		}
		for i, e := range archive.Entries {
			h, err := e.Header()
			if err != nil {
				r.Fatal(err)
			}
			data := make([]byte, h.DataBytes)
			if err := e.Read(context.Background(), data); err != nil {
				r.Fatal(err)
			}
			if e.Name != arrays[i].Name || !same(h, data, arrays[i]) {
				r.Errorf("%+v became %q %+v %x", arrays[i], e.Name, *h, data)
			}
		}
	})
}
