package tensor

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/weirgo/weir"

	"github.com/weirgo/weir/tensor/internal/npyfile"
)

// NPYInfo is what the header of a .npy file says of its array.
type NPYInfo struct {
	DType DType
	Shape []int
}

// StatNPY reads the header of a .npy file, checks the file's size against it and
// reads no elements. It refuses what LoadNPY does, with the same errors.
func StatNPY(path string) (NPYInfo, error) {
	f, err := npyfile.Open(path)
	if err != nil {
		return NPYInfo{}, err
	}
	info := NPYInfo{DType: f.Header.DType, Shape: make([]int, len(f.Header.Shape))}
	for i, n := range f.Header.Shape {
		info.Shape[i] = int(n)
	}
	return info, f.Close()
}

// LoadNPY reads a NumPy .npy file into a new array on ctx's device. Every
// element type of Weir is read, in both byte orders and both memory orders, and
// format versions 1 to 3; a Fortran-order file becomes a column-major array.
// NumPy has no bfloat16: two-byte void elements, as ml_dtypes saves it, are
// read as that. A file that is something else, holds less or more than its
// header promises, or has other elements, is an ErrArgument that names it.
func LoadNPY(ctx context.Context, path string) (*Array, error) {
	f, err := npyfile.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h := f.Header
	a, err := emptyHere(ctx, "tensor.LoadNPY", h.DType, h.Shape)
	if err != nil {
		return nil, err
	}
	if h.Fortran {
		a.layout = colMajor(h.Shape)
	}
	return made(a, load(ctx, a, h.DataBytes, f.Read))
}

// load fills a fresh array with what read reads: in place where host code can
// reach the array's memory, so that a large file is not held twice.
func load(ctx context.Context, a *Array, bytes int64, read func(context.Context, []byte) error) error {
	if bytes == 0 {
		return nil
	}
	err := a.Buffer().HostWrite(ctx, func(memory []byte) error { return read(ctx, memory[:bytes]) })
	if !errors.Is(err, weir.ErrNotSupported) {
		return err
	}
	data := make([]byte, bytes)
	if err := read(ctx, data); err != nil {
		return err
	}
	return fill(ctx, a, data)
}

// SaveNPY waits for a and writes it as a NumPy .npy file, in column-major order
// if a lies so, else in row-major order. The file is written beside path and
// renamed, so that on any failure, the end of ctx included, what was at path is
// still there. While it writes, a may be read and not be written. NumPy's limit
// of 64 axes holds.
func SaveNPY(ctx context.Context, path string, a *Array) error {
	if err := sameDevice("tensor.SaveNPY", namesA, a); err != nil {
		return err
	}
	fortran := a.isColMajor() && !a.isRowMajor()
	rows := a
	if fortran {
		rows = a.T() // its row-major order is a's column-major one
	}
	return save(ctx, rows, func(data []byte) error {
		return npyfile.WriteFile(ctx, path, a.dtype, a.shape(), fortran, data)
	})
}

// save waits for a and calls write with its elements in row-major order.
func save(ctx context.Context, a *Array, write func([]byte) error) error {
	src, free, err := packed(ctx, a)
	if err != nil {
		return err
	}
	defer free()
	if src.size() == 0 {
		return write(nil)
	}
	first := src.offset * src.dtype.Size()
	err = src.Buffer().HostRead(ctx, func(memory []byte) error { return write(memory[first : first+src.Bytes()]) })
	if !errors.Is(err, weir.ErrNotSupported) {
		return err
	}
	data := make([]byte, src.Bytes())
	if err := read(ctx, src, data); err != nil {
		return err
	}
	return write(data)
}

// NPZ is the content of a .npz file: arrays by name.
type NPZ map[string]*Array

// LoadNPZ reads every array of a NumPy .npz file, as LoadNPY reads one. When one
// cannot be read, none is left.
func LoadNPZ(ctx context.Context, path string) (arrays NPZ, err error) {
	archive, err := npyfile.ReadNPZ(path)
	if err != nil {
		return nil, err
	}
	arrays = NPZ{}
	defer func() {
		if err = join(err, archive.Close()); err != nil {
			for _, a := range arrays {
				err = join(err, a.Free())
			}
			arrays = nil
		}
	}()
	for _, e := range archive.Entries {
		h, err := e.Header()
		if err != nil {
			return arrays, err
		}
		a, err := emptyHere(ctx, "tensor.LoadNPZ", h.DType, h.Shape)
		if err != nil {
			return arrays, err
		}
		arrays[e.Name] = a
		if h.Fortran {
			a.layout = colMajor(h.Shape)
		}
		if err := load(ctx, a, h.DataBytes, e.Read); err != nil {
			return arrays, err
		}
	}
	return arrays, nil
}

// SaveNPZ waits for the arrays and writes them, uncompressed and in the order of
// their names, as a NumPy .npz file, which replaces what was at path only when it
// is complete.
func SaveNPZ(ctx context.Context, path string, arrays NPZ) error {
	var named []npyfile.Named
	for _, name := range slices.Sorted(maps.Keys(arrays)) {
		a := arrays[name]
		if err := sameDevice("tensor.SaveNPZ", []string{cmp.Or(name, `""`)}, a); err != nil {
			return err
		}
		n := npyfile.Named{Name: name, DType: a.dtype, Shape: a.shape()}
		if err := save(ctx, a, func(data []byte) error { n.Data = slices.Clone(data); return nil }); err != nil {
			return err
		}
		named = append(named, n)
	}
	return npyfile.WriteNPZ(ctx, path, named)
}
