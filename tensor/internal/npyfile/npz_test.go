package npyfile

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"encoding/binary"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weirgo/weir/dtype"
)

func TestReadNPZTakesWhatNumPyWritesStoredAndDeflated(t *testing.T) {
	type array struct {
		name string
		dt   dtype.DType
		data []byte
	}
	want := []array{
		{"matrix", dtype.Float32, referenceData(dtype.Float32, false)},
		{"fortran", dtype.Int64, referenceData(dtype.Int64, true)},
		{"big", dtype.Complex128, referenceData(dtype.Complex128, false)},
		{"scalar", dtype.Float64, binary.LittleEndian.AppendUint64(nil, math.Float64bits(1.5))},
		{"empty", dtype.Float16, nil},
		{"labels", 0, nil},
		{"grün/x", dtype.BFloat16, referenceData(dtype.BFloat16, false)},
		{"zeros", dtype.Float64, make([]byte, 800000)},
	}
	for path, want := range map[string][]array{"testdata/stored.npz": want[:7], "testdata/deflated.npz": want} {
		a, err := ReadNPZ(path)
		if err != nil {
			t.Fatal(err)
		}
		for i, e := range a.Entries {
			h, err := e.Header()
			if e.Name == "labels" {
				wantError(t, err, path+`, array "labels": elements are strings ("<U1"); expected one of `+known+`; convert with a.astype("float64") before saving if they spell numbers`)
				wantError(t, e.Read(t.Context(), nil), path+`, array "labels": elements are strings ("<U1"); expected one of `+known+`; convert with a.astype("float64") before saving if they spell numbers`)
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			dst := make([]byte, h.DataBytes)
			for range 2 {
				if err := e.Read(t.Context(), dst); err != nil {
					t.Fatal(err)
				}
			}
			if e.Name != want[i].name || h.DType != want[i].dt || !bytes.Equal(dst, want[i].data) {
				t.Errorf("%s: %q is %v %x; expected %q, %v %x", path, e.Name, h.DType, dst, want[i].name, want[i].dt, want[i].data)
			}
		}
		if len(a.Entries) != len(want) {
			t.Errorf("%s: %d arrays; expected %d", path, len(a.Entries), len(want))
		}
		for range 2 {
			if err := a.Close(); err != nil {
				t.Error(err)
			}
		}
		if _, err := a.Entries[0].Header(); err == nil {
			t.Errorf("%s: an array was read after Close", path)
		}
	}
}

func TestWriteNPZRoundTripsInOrder(t *testing.T) {
	arrays := []Named{
		{"z", dtype.Float32, []int64{2, 3}, false, referenceData(dtype.Float32, false)},
		{"a/b.npy", dtype.Complex64, []int64{2, 3}, true, referenceData(dtype.Complex64, true)},
		{"grün", dtype.BFloat16, []int64{0}, false, nil},
		{"scalar", dtype.Int64, nil, false, make([]byte, 8)},
		{"", dtype.Float64, []int64{2, 3}, false, referenceData(dtype.Float64, false)}, // np.savez writes it as ".npy"
	}
	path := filepath.Join(t.TempDir(), "x.npz")
	var first []byte
	for range 2 {
		if err := WriteNPZ(t.Context(), path, arrays); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if first != nil && !bytes.Equal(first, content) {
			t.Error("the same arrays gave other bytes")
		}
		first = content
	}
	a, err := ReadNPZ(path)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if len(a.Entries) != len(arrays) {
		t.Fatalf("%d arrays", len(a.Entries))
	}
	for i, e := range a.Entries {
		h, err := e.Header()
		if err != nil {
			t.Fatal(err)
		}
		dst := make([]byte, h.DataBytes)
		if err := e.Read(t.Context(), dst); err != nil {
			t.Fatal(err)
		}
		if w := arrays[i]; e.Name != w.Name || h.DType != w.DType || !slices.Equal(h.Shape, w.Shape) || h.Fortran != w.Fortran || !bytes.Equal(dst, w.Data) {
			t.Errorf("%q: %+v %x; expected %+v", e.Name, *h, dst, w)
		}
	}
}

func TestAnArchiveMayBeEmpty(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.npz")
	if err := WriteNPZ(t.Context(), path, nil); err != nil {
		t.Fatal(err)
	}
	a, err := ReadNPZ(path)
	if err != nil || len(a.Entries) != 0 {
		t.Fatalf("%+v, %v", a, err)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
}

func TestWriteNPZRefusesBeforeItTouchesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "missing", "x.npz")
	for _, c := range []struct {
		arrays []Named
		text   string
	}{
		{[]Named{{Name: "", Data: make([]byte, 4)}, {Name: ""}}, `, array "": given twice; expected each name once`},
		{[]Named{{Name: "a\xff"}}, `: array 0 is named "a\xff"; expected at most 32768 bytes of UTF-8`},
		{[]Named{{Name: strings.Repeat("a", 32769)}}, `: array 0 is named "` + strings.Repeat("a", 40) + `"…; expected at most 32768 bytes of UTF-8`},
		{[]Named{{Name: "a", Data: make([]byte, 4)}, {Name: "a"}}, `, array "a": given twice; expected each name once`},
		{[]Named{{Name: "a", Shape: []int64{3}}}, `, array "a": 0 bytes of data; expected 12 for shape (3,) of float32`},
		{[]Named{}, ": cannot make a temporary file in " + filepath.Dir(path) + "; expected a writable folder: no such file or directory"},
	} {
		wantError(t, WriteNPZ(t.Context(), path, c.arrays), path+c.text)
	}
}

func TestFoldersInAnArchiveAreNoArrays(t *testing.T) {
	npy := reference(t, "read")["float32 C little 1.0"]
	content := pack(t, func(h *zip.FileHeader) []byte { h.Name = "folder/"; return nil }, func(h *zip.FileHeader) []byte {
		h.Name, h.CompressedSize64, h.UncompressedSize64 = "folder/a.npy", uint64(len(npy)), uint64(len(npy))
		return npy
	})
	entries, err := list(bytes.NewReader(content), int64(len(content)), "x.npz")
	if err != nil || len(entries) != 1 || entries[0].Name != "folder/a" {
		t.Errorf("%+v, %v", entries, err)
	}
}

// pack makes an archive of raw members, each with what change did to its
// header.
func pack(t *testing.T, members ...func(*zip.FileHeader) []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, m := range members {
		h := &zip.FileHeader{Name: "a.npy"}
		content := m(h)
		w, err := z.CreateRaw(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// claims is a member of so many bytes that says it is something else.
func claims(method uint16, held int, packed, whole uint64) func(*zip.FileHeader) []byte {
	return func(h *zip.FileHeader) []byte {
		h.Method, h.CompressedSize64, h.UncompressedSize64 = method, packed, whole
		return make([]byte, held)
	}
}

func TestReadNPZRefusesArchivesThatCannotBeTrue(t *testing.T) {
	npy := reference(t, "read")["float32 C little 1.0"]
	whole := func(name string) func(*zip.FileHeader) []byte {
		return func(h *zip.FileHeader) []byte {
			h.Name, h.CompressedSize64, h.UncompressedSize64 = name, uint64(len(npy)), uint64(len(npy))
			return npy
		}
	}
	// Two entries of the directory that name the same bytes: the second one's
	// offset, at 42 of its record, is set to the first one's.
	overlapping := pack(t, whole("a.npy"), whole("b.npy"))
	binary.LittleEndian.PutUint32(overlapping[bytes.LastIndex(overlapping, []byte("PK\x01\x02"))+42:], 0)
	outside := pack(t, whole("a.npy"))
	// One entry that lies beyond the end: the offset of its own local header is
	// right, but the name in it is claimed to be 60000 bytes long.
	binary.LittleEndian.PutUint16(outside[26:], 60000)
	lost := pack(t, whole("a.npy"))
	lost[0] = 'X'

	for _, c := range []struct {
		content []byte
		text    string
	}{
		{nil, `: empty; expected a zip archive of arrays`},
		{npy, `: begins with "\x93NUMPY\x01\x00"; expected "PK", a zip archive of arrays; it looks like a .npy file`},
		{[]byte("x"), `: begins with "x"; expected "PK", a zip archive of arrays; it looks like text or CSV: load it with np.loadtxt and save it with np.save`},
		{overlapping[:100], `: damaged or truncated zip archive; expected a whole .npz file`},
		{overlapping, `, array "b": shares bytes of the archive with "a"; expected a place of its own`},
		{outside, `, array "a": its 152 bytes begin at 60030 of an archive of 260; expected all of them inside it`},
		{lost, `, array "a": cannot be found in the archive: zip: not a valid zip file`},
		{pack(t, whole("a.npy"), whole("a")), `, array "a": given twice; expected each name once`},
		{pack(t, claims(zip.Store, 4, 4, 5)), `, array "a": stored in 4 bytes for 5; expected the same number`},
		{pack(t, claims(zip.Store, 4, 500, 500)), `, array "a": claims 500 bytes of an archive of 112; expected no more than there are`},
		{pack(t, claims(zip.Deflate, 4, 4, 5*1032)), `, array "a": claims that 4 bytes inflate to 5160; expected at most 1032 times as many`},
		{pack(t, claims(zip.Deflate, 4, 4, 1<<63)), `, array "a": claims that 4 bytes inflate to 9223372036854775808; expected at most 1032 times as many`},
		{pack(t, claims(12, 4, 4, 4)), `, array "a": compressed by zip method 12; expected 0 (stored) or 8 (deflated)`},
		{pack(t, func(h *zip.FileHeader) []byte { h.Flags = 1; return nil }), `, array "a": encrypted; expected plain data`},
	} {
		path := save(t, c.content)
		_, err := ReadNPZ(path)
		wantError(t, err, path+c.text)
	}
	folder := t.TempDir()
	_, err := ReadNPZ(folder)
	wantError(t, err, folder+": is a directory; expected a .npz file")
}

// deflate compresses content into blocks, the last one marked as such only
// when whole.
func deflate(t *testing.T, content []byte, whole bool) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if whole {
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

func TestAnArrayOfAnArchiveIsCheckedAgainstItsHeaderAndChecksum(t *testing.T) {
	npy := reference(t, "read")["float32 C little 1.0"]
	member := func(method uint16, content []byte, size int, sum uint32) []byte {
		return pack(t, func(h *zip.FileHeader) []byte {
			h.Method, h.CompressedSize64, h.UncompressedSize64, h.CRC32 = method, uint64(len(content)), uint64(size), sum
			return content
		})
	}
	stored := func(content []byte) []byte {
		return member(zip.Store, content, len(content), crc32.ChecksumIEEE(content))
	}
	sum := crc32.ChecksumIEEE(npy)
	for _, c := range []struct {
		content []byte
		text    string
	}{
		{member(zip.Store, npy, 152, sum+1), `damaged: its bytes do not match their checksum`},
		{stored(npy[:150]), `truncated: holds 22 bytes of data; expected 24 for shape (2, 3) of float32`},
		{stored(append(npy, 0)), `oversized: holds 25 bytes of data, 1 more than the 24 expected for shape (2, 3) of float32`},
		{stored([]byte("text")), `begins with "text"; expected "\x93NUMPY", a NumPy array; it looks like text or CSV: load it with np.loadtxt and save it with np.save`},
		{stored(nil), `empty; expected a NumPy array`},
		{member(zip.Deflate, []byte{7}, 152, sum), `cannot be read: flate: corrupt input before offset 1`},
		{member(zip.Deflate, deflate(t, npy[:150], true), 152, sum), `truncated: holds 22 bytes of data; expected 24 for shape (2, 3) of float32`},
		{member(zip.Deflate, deflate(t, append(npy, 0), true), 152, sum), `damaged: does not end after its 152 bytes`},
		{member(zip.Deflate, deflate(t, npy, false), 152, sum), `damaged: does not end after its 152 bytes`},
	} {
		path := save(t, c.content)
		a, err := ReadNPZ(path)
		if err != nil {
			t.Fatal(err)
		}
		h, err := a.Entries[0].Header()
		if err == nil {
			err = a.Entries[0].Read(t.Context(), make([]byte, h.DataBytes))
		}
		wantError(t, err, path+`, array "a": `+c.text)
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}
}
