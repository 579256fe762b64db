package npyfile

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/weirgo/weir/dtype"
)

// elements are those of the reference files, of shape (2, 3) in C order, as in
// testdata/elements.py. Complex types have each followed by its negative as the
// imaginary part.
var elements = map[dtype.DType][6]uint64{
	dtype.Float32:  {0x7fc12345, 0xff812345, 0x80000000, 0x7f800000, 0x00000001, 0x3fc00000},
	dtype.Float64:  {0x7ff8000000012345, 0xfff0000000012345, 1 << 63, 0x7ff << 52, 1, 0x3ff8 << 48},
	dtype.Float16:  {0x7e01, 0xfc01, 0x8000, 0x7c00, 0x0001, 0x3e00},
	dtype.BFloat16: {0x7fc1, 0xff81, 0x8000, 0x7f80, 0x0001, 0x3fc0},
	dtype.Int32:    {0x7fffffff, 0x80000000, 0, 1, 0xffffffff, 0x01020304},
	dtype.Int64:    {1<<63 - 1, 1 << 63, 0, 1, 1<<64 - 1, 0x0102030405060708},
}

// referenceData spells the elements as little-endian bytes in either order.
func referenceData(dt dtype.DType, fortran bool) []byte {
	part, width := dt, dt.Size()
	switch dt {
	case dtype.Complex64:
		part, width = dtype.Float32, 4
	case dtype.Complex128:
		part, width = dtype.Float64, 8
	}
	order := [6]int{0, 1, 2, 3, 4, 5}
	if fortran {
		order = [6]int{0, 3, 1, 4, 2, 5}
	}
	var data []byte
	for _, i := range order {
		v := elements[part][i]
		data = append(data, binary.LittleEndian.AppendUint64(nil, v)[:width]...)
		if dt.IsComplex() {
			data = append(data, binary.LittleEndian.AppendUint64(nil, v^1<<(8*width-1))[:width]...)
		}
	}
	return data
}

// reference answers a folder of testdata/reference.zip, by name.
func reference(t testing.TB, folder string) map[string][]byte {
	t.Helper()
	z, err := zip.OpenReader("testdata/reference.zip")
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	files := map[string][]byte{}
	for _, f := range z.File {
		name, ok := strings.CutPrefix(f.Name, folder+"/")
		if !ok {
			continue
		}
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		if files[name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
		r.Close()
	}
	return files
}

// readAll reads a whole file from memory.
func readAll(t *testing.T, content []byte) (*Header, []byte) {
	t.Helper()
	r := bytes.NewReader(content)
	h, err := ReadHeader(r, "x.npy", int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, h.DataBytes)
	if err := ReadData(t.Context(), r, h, data, "x.npy"); err != nil {
		t.Fatal(err)
	}
	return h, data
}

func TestReadTakesEveryTypeOrderByteOrderAndVersionThatNumPyWrites(t *testing.T) {
	files := reference(t, "read")
	count := 0
	for _, dt := range dtype.All() {
		for _, fortran := range []bool{false, true} {
			for _, big := range []bool{false, true} {
				for _, version := range []string{"1.0", "2.0", "3.0"} {
					name := fmt.Sprintf("%v %s %s %s", dt, map[bool]string{false: "C", true: "F"}[fortran],
						map[bool]string{false: "little", true: "big"}[big], version)
					content, ok := files[name]
					if !ok {
						t.Fatalf("no reference file %q", name)
					}
					count++
					h, data := readAll(t, content)
					if h.DType != dt || h.Fortran != fortran || h.BigEndian != big || !slices.Equal(h.Shape, []int64{2, 3}) ||
						h.Elements() != 6 || h.DataBytes != 6*dt.Size() || h.HeaderBytes != int64(len(content))-h.DataBytes {
						t.Errorf("%s: header %+v", name, *h)
					}
					if want := referenceData(dt, fortran); !bytes.Equal(data, want) {
						t.Errorf("%s: data\n  %x\nexpected\n  %x", name, data, want)
					}
				}
			}
		}
	}
	if count != len(files) {
		t.Errorf("%d reference files, %d of them read", len(files), count)
	}
}

func TestWriteMakesTheBytesOfNumPyForEveryType(t *testing.T) {
	files := reference(t, "read")
	for _, dt := range dtype.All() {
		for order, fortran := range map[string]bool{"C": false, "F": true} {
			var b bytes.Buffer
			if err := Write(t.Context(), &b, "x.npy", dt, []int64{2, 3}, fortran, referenceData(dt, fortran)); err != nil {
				t.Fatal(err)
			}
			if want := files[fmt.Sprintf("%v %s little 1.0", dt, order)]; !bytes.Equal(b.Bytes(), want) {
				t.Errorf("%v %s:\n  %q\nexpected\n  %q", dt, order, b.Bytes(), want)
			}
		}
	}
}

func TestWriteMakesTheBytesOfNumPyForEveryShape(t *testing.T) {
	for name, want := range reference(t, "save") {
		order, text, _ := strings.Cut(name, " ")
		var shape []int64
		for extent := range strings.SplitSeq(strings.Trim(text, "()"), ",") {
			var n int64
			if _, err := fmt.Sscan(extent, &n); err == nil {
				shape = append(shape, n)
			}
		}
		h, data := readAll(t, want)
		if !slices.Equal(h.Shape, shape) {
			t.Errorf("%s: read shape %v", name, h.Shape)
		}
		// np.arange laid out in either order is 0, 1, 2 … in C order only.
		for i := range h.Elements() {
			if got := binary.LittleEndian.Uint32(data[4*i:]); !h.Fortran && int64(got) != i {
				t.Errorf("%s: element %d is %d", name, i, got)
			}
		}
		var b bytes.Buffer
		if err := Write(t.Context(), &b, "x.npy", dtype.Int32, shape, order == "F", data); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(b.Bytes(), want) {
			t.Errorf("%s:\n  %q\nexpected\n  %q", name, b.Bytes(), want)
		}
	}
}

func TestReadRefusesTypesThatWeirLacksByName(t *testing.T) {
	texts := map[string]string{
		"bool":        `elements are bool ("|b1"); expected one of ` + known + `; convert with a.astype("int32") before saving`,
		"uint8":       `elements are uint8 ("|u1"); expected one of ` + known + `; convert with a.astype("int32") before saving`,
		"uint16":      `elements are uint16 ("<u2"); expected one of ` + known + `; convert with a.astype("int32") before saving`,
		"uint32":      `elements are uint32 ("<u4"); expected one of ` + known + `; convert with a.astype("int64") before saving`,
		"uint64":      `elements are uint64 ("<u8"); expected one of ` + known + `; convert with a.astype("int64") before saving`,
		"int8":        `elements are int8 ("|i1"); expected one of ` + known + `; convert with a.astype("int32") before saving`,
		"int16":       `elements are int16 ("<i2"); expected one of ` + known + `; convert with a.astype("int32") before saving`,
		"longdouble":  `elements are float128 (long double) ("<f16"); expected one of ` + known + `; convert with a.astype("float64") before saving`,
		"clongdouble": `elements are complex256 (long double) ("<c32"); expected one of ` + known + `; convert with a.astype("complex128") before saving`,
		"M8[ns]":      `elements are datetime64 ("<M8[ns]"); expected one of ` + known + `; convert with a.astype("int64") before saving`,
		"m8[s]":       `elements are timedelta64 ("<m8[s]"); expected one of ` + known + `; convert with a.astype("int64") before saving`,
		"U5":          `elements are strings ("<U5"); expected one of ` + known + `; convert with a.astype("float64") before saving if they spell numbers`,
		"S3":          `elements are strings ("|S3"); expected one of ` + known + `; convert with a.astype("float64") before saving if they spell numbers`,
		"V5":          `elements are raw bytes (void) ("|V5"); expected one of ` + known + `; of these only V2 is known, as bfloat16`,
		"float8":      `elements are raw bytes (void) ("<V1"); expected one of ` + known + `; of these only V2 is known, as bfloat16`,
		"O":           `elements are Python objects (pickle) ("|O"); expected one of ` + known + `; convert with a.astype("float64") before saving`,
		"structured":  `elements are of structured dtype [('x', '<f4'), ('y', '<i4', (2,))]; expected one of ` + known + `; save each field on its own, as a["field"]`,
	}
	for name, content := range reference(t, "refused") {
		text, ok := texts[name]
		if !ok {
			t.Fatalf("no text for %q", name)
		}
		_, err := ReadHeader(bytes.NewReader(content), "x.npy", int64(len(content)))
		wantError(t, err, "x.npy: "+text)
		delete(texts, name)
	}
	for name := range texts {
		t.Errorf("no reference file for %q", name)
	}
}
