package npyfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/weirgo/weir/dtype"
)

// v1 puts text behind the preamble of a file of version 1.0.
func v1(text string) []byte {
	b := []byte("\x93NUMPY\x01\x00")
	b = binary.LittleEndian.AppendUint16(b, uint16(len(text)))
	return append(b, text...)
}

func TestReadHeaderTakesEverySpellingOfADictionary(t *testing.T) {
	for _, c := range []struct {
		text    string
		dt      dtype.DType
		shape   []int64
		fortran bool
		big     bool
	}{
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }  \n", dtype.Float32, []int64{2, 3}, false, false},
		{"{'shape':(3L,),'fortran_order':True,'descr':'>f8'}", dtype.Float64, []int64{3}, true, true},
		{`{"descr": "<i4", "fortran_order": False, "shape": ()}`, dtype.Int32, nil, false, false},
		{"{u'fortran_order': False, U'descr': u'<i8', 'shape': (2l, 3l)}\n", dtype.Int64, []int64{2, 3}, false, false},
		{" \t\n{ 'descr'\n:\t'c8' ,\r\n'fortran_order' : True , 'shape' : ( 0 , 4 , ) , } \f\r\n", dtype.Complex64, []int64{0, 4}, true, false},
		{"{'descr': '=c16', 'fortran_order': False, 'shape': (1,)}" + strings.Repeat(" ", 5000), dtype.Complex128, []int64{1}, false, false},
		{"{'descr': '|f4', 'fortran_order': False, 'shape': (1,)}", dtype.Float32, []int64{1}, false, false},
		{"{'descr': '|V2', 'fortran_order': False, 'shape': (1,)}", dtype.BFloat16, []int64{1}, false, false},
		{"{'descr': 'float32', 'fortran_order': False, 'shape': (1,)}", dtype.Float32, []int64{1}, false, false},
		{"{'descr': 'float16', 'fortran_order': False, 'shape': (1,)}", dtype.Float16, []int64{1}, false, false},
	} {
		h, err := ReadHeader(bytes.NewReader(v1(c.text)), "x.npy", -1)
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		if h.DType != c.dt || !slices.Equal(h.Shape, c.shape) || h.Fortran != c.fortran || h.BigEndian != c.big || h.HeaderBytes != int64(10+len(c.text)) {
			t.Errorf("%q: %+v", c.text, *h)
		}
	}
}

func TestReadHeaderRefusesWhatIsNoHeader(t *testing.T) {
	head := func(descr, shape string) string {
		return "{'descr': " + descr + ", 'fortran_order': False, 'shape': " + shape + "}"
	}
	whole := v1(head("'<f4'", "(2,)"))
	notNumPy := `; expected "\x93NUMPY", a NumPy array`
	for _, c := range []struct{ content, text string }{
		{"", `empty; expected a NumPy array`},
		{"\x00\x01\x02", `begins with "\x00\x01\x02"` + notNumPy},
		{"\x93NUMPX\x01\x00", `begins with "\x93NUMPX\x01\x00"` + notNumPy},
		{"PK\x03\x04\x14\x00\x00\x00\x08", `begins with "PK\x03\x04\x14\x00\x00\x00"` + notNumPy + `; it looks like a zip archive: is it a .npz file?`},
		{"PK\x05\x06\x00\x00\x00\x00\x00", `begins with "PK\x05\x06\x00\x00\x00\x00"` + notNumPy + `; it looks like an empty zip archive: is it a .npz file?`},
		{"\x89HDF\r\n\x1a\n\x00", `begins with "\x89HDF\r\n\x1a\n"` + notNumPy + `; it looks like HDF5`},
		{"\x1f\x8b\x08\x00\x00\x00\x00\x00", `begins with "\x1f\x8b\b\x00\x00\x00\x00\x00"` + notNumPy + `; it looks like gzip: decompress it first`},
		{"\x80\x04\x95\x00\x00\x00\x00\x00", `begins with "\x80\x04\x95\x00\x00\x00\x00\x00"` + notNumPy + `; it looks like a Python pickle: save the array with np.save`},
		{"1,2\n3,4\n5,6\n", `begins with "1,2\n3,4\n"` + notNumPy + `; it looks like text or CSV: load it with np.loadtxt and save it with np.save`},
		{"\x93NUM", `truncated: ends after 4 bytes; expected a whole header`},
		{"\x93NUMPY\x01\x00v", `truncated: ends after 9 bytes; expected a whole header`},
		{"\x93NUMPY\x02\x00v\x00\x00", `truncated: ends after 11 bytes; expected a whole header`},
		{"\x93NUMPY\x00\x00v\x00", `format version 0.0; expected 1.0, 2.0 or 3.0`},
		{"\x93NUMPY\x04\x00v\x00", `format version 4.0; expected 1.0, 2.0 or 3.0`},
		{"\x93NUMPY\x01\x01v\x00", `format version 1.1; expected 1.0, 2.0 or 3.0`},
		{string(whole[:40]), `truncated: ends after 40 bytes; expected a header of 65`},
		{"\x93NUMPY\x02\x00\x01\x00\x01\x00", `header of 65537 bytes; expected at most 65536`},
		{"\x93NUMPY\x03\x00\xff\xff\xff\xff", `header of 4294967295 bytes; expected at most 65536`},
		{string(v1("")), `malformed header: byte 0: ends; expected '{'`},
		{string(v1("[1]")), `malformed header: byte 0: "["; expected '{'`},
		{string(v1("{")), `malformed header: byte 1: ends; expected a quoted string`},
		{string(v1("{u}")), `malformed header: byte 1: "u"; expected a quoted string`},
		{string(v1("{descr: '<f4'}")), `malformed header: byte 1: "d"; expected a quoted string`},
		{string(v1("{'descr' '<f4'}")), `malformed header: byte 9: "'"; expected ':'`},
		{string(v1("{'descr': '<f4' 'shape': ()}")), `malformed header: byte 16: "'"; expected ','`},
		{string(v1("{'descr': '<f4, }")), `malformed header: byte 10: a string without an end; expected '`},
		{string(v1(`{'descr': '\x3cf4', }`)), `malformed header: byte 11: "\\"; expected the string's end, '`},
		{string(v1("{'descr': 4}")), `malformed header: byte 10: "4"; expected a quoted string`},
		{string(v1("{'descr': '<f4', 'descr': '<f4'}")), `malformed header: byte 17: key 'descr' given twice; expected once`},
		{string(v1("{'descr': '<f4', 'order': 1}")), `malformed header: byte 17: key "order"; expected 'descr', 'fortran_order' or 'shape'`},
		{string(v1("{}")), `malformed header: no key 'descr'; expected 'descr', 'fortran_order' and 'shape'`},
		{string(v1("{'descr': '<f4', 'fortran_order': False}")), `malformed header: no key 'shape'; expected 'descr', 'fortran_order' and 'shape'`},
		{string(v1("{'fortran_order': 1}")), `malformed header: byte 18: "1"; expected True or False`},
		{string(v1(head("'<f4'", "(2,)") + " x")), `malformed header: byte 56: "x"; expected nothing after the dictionary`},
		{string(v1(head("'<f4'", "[2]"))), `malformed header: byte 50: "["; expected '('`},
		{string(v1(head("'<f4'", "(2)"))), `malformed header: byte 52: shape (2) is a number in Python; expected a tuple, (2,)`},
		{string(v1(head("'<f4'", "(2 3)"))), `malformed header: byte 53: "3"; expected ',' or ')'`},
		{string(v1(head("'<f4'", "(2, x)"))), `malformed header: byte 54: "x"; expected an integer`},
		{string(v1(head("'<f4'", "(2, 1.5)"))), `malformed header: byte 55: "."; expected ',' or ')'`},
		{string(v1(head("'<f4'", "(9223372036854775808,)"))), `malformed header: byte 51: extent 9223372036854775808 overflows; expected an int64`},
		{string(v1(head("'<f4'", "("+strings.Repeat("9", 100)+",)"))), `malformed header: byte 51: extent 99999999999999999999… of 100 digits overflows; expected an int64`},
		{string(v1(head("'<f4'", "(2, -3)"))), `shape (2, -3) has a negative extent at axis 1; expected 0 or more`},
		{string(v1(head("'<f8'", "(4611686018427387904,)"))), `shape (4611686018427387904,) of float64 overflows; expected at most 9223372036854775807 bytes`},
		{string(v1(head("'<f4'", "(0, 4294967296, 4294967296)"))), `shape (0, 4294967296, 4294967296) of float32 overflows; expected at most 9223372036854775807 bytes`},
		{string(v1(head("'<f4'", "("+strings.Repeat("1, ", 65)+")"))), `shape has 65 axes; expected at most 64`},
		{string(v1(head("''", "()"))), `elements are of unknown type ""; expected one of ` + known},
		{string(v1(head("'<'", "()"))), `elements are of unknown type "<"; expected one of ` + known},
		{string(v1(head("'<<f4'", "()"))), `elements are of unknown type "<<f4"; expected one of ` + known},
		{string(v1(head("'<x9'", "()"))), `elements are of unknown type ("<x9"); expected one of ` + known + `; convert with a.astype("float64") before saving`},
		{string(v1(head("'<"+strings.Repeat("x", 60)+"'", "()"))), `elements are of unknown type ("<xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"…); expected one of ` + known + `; convert with a.astype("float64") before saving`},
		{string(v1(head("('<f4', (2,))", "()"))), `elements are of structured dtype ('<f4', (2,)); expected one of ` + known + `; save each field on its own, as a["field"]`},
		{string(v1(head("[\x1b"+strings.Repeat("(", 100), "()"))), `elements are of structured dtype [?` + strings.Repeat("(", 58) + ` …; expected one of ` + known + `; save each field on its own, as a["field"]`},
		{string(whole) + "1234567", `truncated: holds 7 bytes of data; expected 8 for shape (2,) of float32`},
		{string(v1(head("'<f8'", "(1152921504606846975,)"))), `truncated: holds 0 bytes of data; expected 9223372036854775800 for shape (1152921504606846975,) of float64`},
		{string(whole) + "123456789", `oversized: holds 9 bytes of data, 1 more than the 8 expected for shape (2,) of float32`},
	} {
		_, err := ReadHeader(strings.NewReader(c.content), "x.npy", int64(len(c.content)))
		wantError(t, err, "x.npy: "+c.text)
	}
}

func TestReadHeaderNeedsNoSize(t *testing.T) {
	content := v1("{'descr': '<f8', 'fortran_order': False, 'shape': (1152921504606846975,)}")
	h, err := ReadHeader(iotest.OneByteReader(bytes.NewReader(content)), "x.npy", -1)
	if err != nil || h.DataBytes != 9223372036854775800 {
		t.Fatalf("%+v, %v", h, err)
	}
	_, err = ReadHeader(bytes.NewReader(content[:40]), "x.npy", -1)
	wantError(t, err, "x.npy: truncated: ends after 40 bytes; expected a header of 83")
}

func TestReadHeaderPassesOnWhatTheSystemSays(t *testing.T) {
	content := v1("{'descr': '<f8', 'fortran_order': False, 'shape': ()}")
	for _, at := range []int64{0, 9, 20} {
		r := io.MultiReader(io.LimitReader(bytes.NewReader(content), at), iotest.ErrReader(syscall.EIO))
		_, err := ReadHeader(r, "x.npy", -1)
		wantError(t, err, "x.npy: cannot be read: input/output error")
		if !errors.Is(err, syscall.EIO) {
			t.Errorf("at %d: %v does not match EIO", at, err)
		}
	}
}
