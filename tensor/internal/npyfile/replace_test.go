package npyfile

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/weirgo/weir/dtype"
)

// writeSix writes six float32 to path.
func writeSix(ctx context.Context, path string) error {
	return WriteFile(ctx, path, dtype.Float32, []int64{2, 3}, false, referenceData(dtype.Float32, false))
}

// wantContent checks the bytes of a file, and that its folder holds these names
// and no others: no temporary file stays behind.
func wantContent(t *testing.T, path string, content []byte, names ...string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%s: %d bytes, %v; expected %d", path, len(got), err, len(content))
	}
	wantNames(t, filepath.Dir(path), names...)
}

func wantNames(t *testing.T, folder string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if slices.Sort(names); !slices.Equal(got, names) {
		t.Errorf("folder holds %q; expected %q", got, names)
	}
}

func TestWriteFileMakesAndReplacesAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.npy")
	want := reference(t, "read")["float32 C little 1.0"]
	for range 2 {
		if err := writeSix(t.Context(), path); err != nil {
			t.Fatal(err)
		}
		wantContent(t, path, want, "x.npy")
		if err := os.WriteFile(path, []byte("old"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWriteFileTakesANameInTheCurrentFolder(t *testing.T) {
	want := reference(t, "read")["float32 C little 1.0"]
	t.Chdir(t.TempDir())
	if err := writeSix(t.Context(), "x.npy"); err != nil {
		t.Fatal(err)
	}
	wantContent(t, "x.npy", want, "x.npy")
}

func TestAReaderKeepsTheFileThatItOpened(t *testing.T) {
	old := reference(t, "read")["int64 F big 3.0"]
	path := save(t, old)
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := writeSix(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	dst := make([]byte, f.Header.DataBytes)
	if err := f.Read(t.Context(), dst); err != nil || !bytes.Equal(dst, referenceData(dtype.Int64, true)) {
		t.Errorf("%x, %v", dst, err)
	}
}

func TestAFailureLeavesTheOldFileAndNoOther(t *testing.T) {
	path := save(t, []byte("old"))
	broken := errors.New("broken")
	err := replace(t.Context(), path, "a .npy file", func(w io.Writer) error {
		if _, err := w.Write([]byte("new")); err != nil {
			t.Error(err)
		}
		if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 2 {
			t.Errorf("%v, %v; expected the file and a temporary one beside it", entries, err)
		}
		return broken
	})
	if err != broken {
		t.Errorf("error %v; expected %v", err, broken)
	}
	wantContent(t, path, []byte("old"), "x.npy")
}

// endsAfter is a context that ends when it has been looked at n times.
type endsAfter struct {
	context.Context
	n int
}

func (c *endsAfter) Err() error {
	if c.n--; c.n < 0 {
		return context.Canceled
	}
	return nil
}

func TestACancellationAtAnyMomentLeavesTheOldFileAndNoOther(t *testing.T) {
	const size = 2*chunk + 8
	data := make([]byte, size)
	named := []Named{{Name: "a", DType: dtype.Float64, Shape: []int64{size / 8}, Data: data}}
	for looks, text := range []string{
		": stopped before writing",
		": stopped after writing 0 of 2097288 bytes",
		": stopped after writing 128 of 2097288 bytes",
		": stopped after writing 1048704 of 2097288 bytes",
		": stopped after writing 2097280 of 2097288 bytes",
		": stopped before the new file took its place",
	} {
		for _, npz := range []bool{false, true} {
			path, place := save(t, []byte("old")), ""
			var err error
			if ctx := (&endsAfter{t.Context(), looks}); npz {
				err = WriteNPZ(ctx, path, named)
				if looks > 0 && looks < 5 {
					place = `, array "a"`
				}
			} else {
				err = WriteFile(ctx, path, dtype.Float64, []int64{size / 8}, false, data)
			}
			if want := "npy: " + path + place + text + ": context canceled"; err == nil || err.Error() != want {
				t.Errorf("error %v; expected %s", err, want)
			}
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%v does not match context.Canceled", err)
			}
			wantContent(t, path, []byte("old"), "x.npy")
		}
	}
}

func TestARenamingThatFailsLeavesNoOtherFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.npy")
	err := replace(t.Context(), path, "a .npy file", func(io.Writer) error { return os.Mkdir(path, 0o777) })
	wantError(t, err, path+": the new file cannot take its place: file exists")
	wantNames(t, filepath.Dir(path), "x.npy")
}

func TestWriteFileRefusesAnArrayBeforeItTouchesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "folder that is missing", "x.npy")
	err := WriteFile(t.Context(), path, dtype.Float32, []int64{2}, false, nil)
	wantError(t, err, path+": 0 bytes of data; expected 8 for shape (2,) of float32")
}

func TestWriteFileRefusesPlacesWhereNoFileCanBe(t *testing.T) {
	folder := t.TempDir()
	missing := filepath.Join(folder, "missing", "x.npy")
	err := writeSix(t.Context(), missing)
	wantError(t, err, missing+": cannot make a temporary file in "+filepath.Dir(missing)+"; expected a writable folder: no such file or directory")
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v does not match os.ErrNotExist", err)
	}
	wantError(t, writeSix(t.Context(), folder), folder+": is a directory; expected a place for a .npy file")
	wantError(t, writeSix(t.Context(), ""), `"": empty path; expected a place for a .npy file`)
	wantError(t, writeSix(t.Context(), "/dev/full"), "/dev/full: is a device; expected a place for a .npy file")
	file := save(t, nil)
	wantError(t, writeSix(t.Context(), file+"/x.npy"), file+"/x.npy: cannot be looked at; expected a place for a .npy file: not a directory")
	wantNames(t, folder)
}

func TestWriteFileGoesThroughSymbolicLinks(t *testing.T) {
	folder := t.TempDir()
	for _, sub := range []string{"a", "b", "b/c"} {
		if err := os.Mkdir(filepath.Join(folder, sub), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	// a/link -> b/c/../made.npy by way of a folder that is itself a link.
	for link, to := range map[string]string{"a/link": "../way/../next", "way": "b/c", "b/next": filepath.Join(folder, "b", "made.npy")} {
		if err := os.Symlink(to, filepath.Join(folder, link)); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // it is made first, then replaced
		if err := writeSix(t.Context(), filepath.Join(folder, "a", "link")); err != nil {
			t.Fatal(err)
		}
		wantContent(t, filepath.Join(folder, "b", "made.npy"), reference(t, "read")["float32 C little 1.0"], "c", "made.npy", "next")
		wantNames(t, filepath.Join(folder, "a"), "link")
		if to, err := os.Readlink(filepath.Join(folder, "a", "link")); err != nil || to != "../way/../next" {
			t.Errorf("the link is %q, %v", to, err)
		}
	}
}

func TestWriteFileRefusesALoopOfSymbolicLinks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.npy")
	if err := os.Symlink(path, path); err != nil {
		t.Fatal(err)
	}
	wantError(t, writeSix(t.Context(), path), path+": cannot be followed; expected a place for a .npy file: too many levels of symbolic links")
}
