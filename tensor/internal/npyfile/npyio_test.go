package npyfile

import (
	"bytes"
	"reflect"
	"slices"
	"testing"

	"github.com/sbinet/npyio/npy"
	"github.com/sbinet/npyio/npz"

	"github.com/weirgo/weir/dtype"
)

// samples are slices of the types that npyio knows, with their bytes.
func samples() map[dtype.DType]any {
	return map[dtype.DType]any{
		dtype.Float32:    []float32{1.5, -2, 3e38, 0},
		dtype.Float64:    []float64{1.5, -2, 3e300, 0},
		dtype.Int32:      []int32{1, -2, 1 << 30, 0},
		dtype.Int64:      []int64{1, -2, 1 << 60, 0},
		dtype.Complex64:  []complex64{1 + 2i, -3i, 4, 0},
		dtype.Complex128: []complex128{1 + 2i, -3i, 4, 0},
	}
}

func TestReadTakesWhatNpyioWrites(t *testing.T) {
	for dt, values := range samples() {
		var file bytes.Buffer
		if err := npy.Write(&file, values); err != nil {
			t.Fatal(err)
		}
		h, data := readAll(t, file.Bytes())
		if h.DType != dt || !slices.Equal(h.Shape, []int64{4}) || h.Fortran {
			t.Errorf("%v: %+v", dt, *h)
		}
		var again bytes.Buffer
		if err := Write(t.Context(), &again, "x.npy", dt, h.Shape, false, data); err != nil {
			t.Fatal(err)
		}
		back := reflect.New(reflect.TypeOf(values))
		if err := npy.Read(&again, back.Interface()); err != nil {
			t.Fatal(err)
		}
		if got := back.Elem().Interface(); !reflect.DeepEqual(got, values) {
			t.Errorf("%v: %v went out and %v came back", dt, values, got)
		}
	}
}

func TestArchivesGoToNpyioAndBack(t *testing.T) {
	path := t.TempDir() + "/x.npz"
	if err := npz.Write(path, map[string]any{"a.npy": []float32{1, 2}, "b.npy": []int64{3}}); err != nil {
		t.Fatal(err)
	}
	a, err := ReadNPZ(path)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	var arrays []Named
	for _, e := range a.Entries {
		h, err := e.Header()
		if err != nil {
			t.Fatal(err)
		}
		n := Named{Name: e.Name, DType: h.DType, Shape: h.Shape, Data: make([]byte, h.DataBytes)}
		if err := e.Read(t.Context(), n.Data); err != nil {
			t.Fatal(err)
		}
		arrays = append(arrays, n)
	}
	if err := WriteNPZ(t.Context(), path, arrays); err != nil {
		t.Fatal(err)
	}
	r, err := npz.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var x []float32
	var y []int64
	if err := r.Read("a.npy", &x); err != nil || !slices.Equal(x, []float32{1, 2}) {
		t.Errorf("%v, %v", x, err)
	}
	if err := r.Read("b.npy", &y); err != nil || !slices.Equal(y, []int64{3}) {
		t.Errorf("%v, %v", y, err)
	}
}
