package npyfile

import (
	"archive/zip"
	"context"
	"io"
	"time"
	"unicode/utf8"

	"github.com/weirgo/weir/dtype"
)

// Named is one array to write into an archive; the fields are Write's
// arguments.
type Named struct {
	Name    string // without .npy; may be empty, as NumPy's may
	DType   dtype.DType
	Shape   []int64
	Fortran bool
	Data    []byte
}

// WriteNPZ writes arrays to a .npz file in this order, uncompressed, as NumPy's
// np.savez does; all are checked before anything is written. Files are replaced
// as by WriteFile. The same arrays give the same bytes, whenever they are
// written.
func WriteNPZ(ctx context.Context, path string, arrays []Named) error {
	heads := make([][]byte, len(arrays))
	seen := map[string]bool{}
	for i, a := range arrays {
		where := member(path, a.Name+".npy")
		switch {
		case !utf8.ValidString(a.Name) || len(a.Name) > 1<<15:
			return refuse(path, "array %d is named %s; expected at most 32768 bytes of UTF-8", i, quote(a.Name))
		case seen[a.Name]:
			return refuse(where, "given twice; expected each name once")
		}
		seen[a.Name] = true
		var err error
		if heads[i], err = header(where, a.DType, a.Shape, a.Fortran, a.Data); err != nil {
			return err
		}
	}
	return replace(ctx, path, "a .npz file", func(w io.Writer) error {
		z := zip.NewWriter(w)
		for i, a := range arrays {
			// zip's first day, as NumPy writes it: a zero date is none.
			file, err := z.CreateHeader(&zip.FileHeader{Name: a.Name + ".npy", Modified: time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)})
			if err != nil {
				return failed(member(path, a.Name+".npy"), err, "cannot be begun")
			}
			if err := stream(ctx, file, member(path, a.Name+".npy"), heads[i], a.Data); err != nil {
				return err
			}
		}
		if err := z.Close(); err != nil {
			return failed(path, err, "the archive's directory cannot be written")
		}
		return nil
	})
}
