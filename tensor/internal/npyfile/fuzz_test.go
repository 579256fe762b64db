package npyfile

import (
	"bytes"
	"context"
	"os"
	"runtime/metrics"
	"slices"
	"testing"
)

// allocated is the number of bytes that the process has allocated so far.
func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// FuzzRead gives any bytes to the reader of .npy files. It must not panic nor
// allocate more than the input's size (and room for a header); what it takes
// must come out of Write and another read unchanged.
func FuzzRead(f *testing.F) {
	files := reference(f, "read")
	for _, name := range []string{"float32 C little 1.0", "complex128 F big 2.0", "bfloat16 C big 3.0", "int64 F little 1.0"} {
		f.Add(files[name])
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		ctx := context.Background()
		before := allocated()
		r := bytes.NewReader(file)
		h, err := ReadHeader(r, "x.npy", int64(len(file)))
		if grown := allocated() - before; grown > 1<<20+16*uint64(len(file)) {
			t.Fatalf("%d bytes allocated for a file of %d", grown, len(file))
		}
		if err != nil {
			return
		}
		if h.HeaderBytes+h.DataBytes != int64(len(file)) {
			t.Fatalf("%+v for a file of %d bytes", *h, len(file))
		}
		data := make([]byte, h.DataBytes)
		if err := ReadData(ctx, r, h, data, "x.npy"); err != nil {
			t.Fatal(err)
		}
		var again bytes.Buffer
		if err := Write(ctx, &again, "x.npy", h.DType, h.Shape, h.Fortran, data); err != nil {
			t.Fatal(err)
		}
		h2, data2 := readAll(t, again.Bytes())
		if h2.DType != h.DType || !slices.Equal(h2.Shape, h.Shape) || !bytes.Equal(data2, data) {
			t.Fatalf("%+v became %+v", *h, *h2)
		}
	})
}

// FuzzReadNPZ gives any bytes to the reader of archives. All arrays together
// must not ask for more than deflate can have packed into the input.
func FuzzReadNPZ(f *testing.F) {
	for _, path := range []string{"testdata/stored.npz", "testdata/deflated.npz"} {
		content, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(content)
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		before := allocated()
		entries, err := list(bytes.NewReader(file), int64(len(file)), "x.npz")
		if grown := allocated() - before; grown > 1<<20+64*uint64(len(file)) {
			t.Fatalf("%d bytes allocated for a file of %d", grown, len(file))
		}
		if err != nil {
			return
		}
		total := int64(0)
		for _, e := range entries {
			h, err := e.Header()
			if err != nil {
				continue
			}
			total += h.DataBytes
			if total > maxInflation*int64(len(file)) {
				t.Fatalf("arrays of %d bytes in an archive of %d", total, len(file))
			}
			_ = e.Read(context.Background(), make([]byte, h.DataBytes)) // whatever it says, it doesn't panic
		}
	})
}
