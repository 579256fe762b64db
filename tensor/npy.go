package tensor

import (
	"context"

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
	data := make([]byte, h.DataBytes)
	if err := f.Read(ctx, data); err != nil || len(data) == 0 {
		return made(a, err)
	}
	return made(a, fill(ctx, a, data))
}

// SaveNPY waits for a and writes it as a NumPy .npy file, in column-major order
// if a lies so, else in row-major order. The file is written beside path and
// renamed, so that on any failure, the end of ctx included, what was at path is
// still there.
func SaveNPY(ctx context.Context, path string, a *Array) error {
	if err := sameDevice("tensor.SaveNPY", "a", a); err != nil {
		return err
	}
	fortran := a.isColMajor() && !a.isRowMajor()
	rows := a
	if fortran {
		rows = a.T() // its row-major order is a's column-major one
	}
	data := make([]byte, a.Bytes())
	if err := read(ctx, rows, data); err != nil {
		return err
	}
	return npyfile.WriteFile(ctx, path, a.dtype, a.shape(), fortran, data)
}
