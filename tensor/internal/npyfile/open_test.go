package npyfile

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/dtype"
)

func save(t *testing.T, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.npy")
	if err := os.WriteFile(path, content, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestOpenReadsAFileAsOftenAsAsked(t *testing.T) {
	f, err := Open(save(t, reference(t, "read")["complex128 F big 2.0"]))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for range 2 {
		dst := make([]byte, f.Header.DataBytes)
		if err := f.Read(t.Context(), dst); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(dst, referenceData(dtype.Complex128, true)) {
			t.Errorf("data %x", dst)
		}
	}
}

func TestAFileEndsWithClose(t *testing.T) {
	path := save(t, reference(t, "read")["int32 C little 1.0"])
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := f.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	err = f.Read(t.Context(), make([]byte, 24))
	if want := "npy: " + path + ": cannot be read after 0 of 24 bytes of data: file already closed"; err == nil || err.Error() != want {
		t.Errorf("error %v; expected %s", err, want)
	}
	if !errors.Is(err, weir.ErrClosed) {
		t.Errorf("%v does not match ErrClosed", err)
	}
}

func TestOpenRefusesWhatIsNoFile(t *testing.T) {
	folder := t.TempDir()
	missing := filepath.Join(folder, "missing.npy")
	_, err := Open(missing)
	wantError(t, err, missing+": cannot be opened; expected a .npy file: no such file or directory")
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v does not match fs.ErrNotExist", err)
	}
	_, err = Open(folder)
	wantError(t, err, folder+": is a directory; expected a .npy file")
	_, err = Open("")
	wantError(t, err, `"": empty path; expected that of a .npy file`)
	_, err = Open("/dev/null")
	wantError(t, err, "/dev/null: is a device; expected a .npy file")
}

func TestOpenChecksTheFilesSize(t *testing.T) {
	content := reference(t, "read")["float32 C little 1.0"]
	path := save(t, nil)
	_, err := Open(path)
	wantError(t, err, path+": empty; expected a NumPy array")
	path = save(t, content[:len(content)-1])
	_, err = Open(path)
	wantError(t, err, path+": truncated: holds 23 bytes of data; expected 24 for shape (2, 3) of float32")
	path = save(t, append(content, "more"...))
	_, err = Open(path)
	wantError(t, err, path+": oversized: holds 28 bytes of data, 4 more than the 24 expected for shape (2, 3) of float32")
}

func TestReadRefusesAFileThatShrankAfterOpen(t *testing.T) {
	content := reference(t, "read")["float32 C little 1.0"]
	path := save(t, content)
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.Truncate(path, int64(len(content)-5)); err != nil {
		t.Fatal(err)
	}
	err = f.Read(t.Context(), make([]byte, 24))
	wantError(t, err, path+": truncated: holds 19 bytes of data; expected 24 for shape (2, 3) of float32")
}
