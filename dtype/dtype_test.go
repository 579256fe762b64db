package dtype_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/x448/float16"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/dtype"
)

// The table is NumPy's (ml_dtypes' for bfloat16), in the order of the native
// interface's numbers.
var table = []struct {
	dtype   dtype.DType
	name    string
	size    int64
	complex bool
	integer bool
}{
	{dtype.Float32, "float32", 4, false, false},
	{dtype.Float64, "float64", 8, false, false},
	{dtype.Int32, "int32", 4, false, true},
	{dtype.Int64, "int64", 8, false, true},
	{dtype.Complex64, "complex64", 8, true, false},
	{dtype.Complex128, "complex128", 16, true, false},
	{dtype.Float16, "float16", 2, false, false},
	{dtype.BFloat16, "bfloat16", 2, false, false},
}

func TestEveryTypeHasItsNumberNameAndSize(t *testing.T) {
	if got := len(dtype.All()); got != len(table) {
		t.Fatalf("All lists %d types; the table has %d", got, len(table))
	}
	for i, want := range table {
		d := dtype.All()[i]
		if d != want.dtype || int(d) != i {
			t.Errorf("All()[%d] is %v, number %d; expected %v", i, d, d, want.dtype)
		}
		if d.String() != want.name || dtype.Names()[i] != want.name {
			t.Errorf("%v is called %q and %q; expected %q", d, d.String(), dtype.Names()[i], want.name)
		}
		if d.Size() != want.size {
			t.Errorf("%v has size %d; expected %d", d, d.Size(), want.size)
		}
		if d.IsComplex() != want.complex || d.IsInteger() != want.integer || !d.Valid() {
			t.Errorf("%v: complex %t, integer %t, valid %t; expected %t, %t, true", d, d.IsComplex(), d.IsInteger(), d.Valid(), want.complex, want.integer)
		}
	}
}

func TestRealIsTheTypeOfTheParts(t *testing.T) {
	for _, d := range dtype.All() {
		want := map[dtype.DType]dtype.DType{dtype.Complex64: dtype.Float32, dtype.Complex128: dtype.Float64}[d]
		if !d.IsComplex() {
			want = d
		}
		if got := d.Real(); got != want {
			t.Errorf("the parts of %v are %v; expected %v", d, got, want)
		}
	}
}

func TestATypeThatIsNoneIsInvalidAndHasNoSize(t *testing.T) {
	for _, d := range []dtype.DType{dtype.BFloat16 + 1, 255} {
		if d.Valid() || d.Size() != 0 || d.IsComplex() || d.IsInteger() {
			t.Errorf("%v: valid %t, size %d", d, d.Valid(), d.Size())
		}
		if want := fmt.Sprintf("dtype(%d)", uint8(d)); d.String() != want {
			t.Errorf("it reads %q; expected %q", d, want)
		}
	}
}

func TestListsAreTheCallersOwn(t *testing.T) {
	dtype.All()[0] = dtype.Int64
	dtype.Names()[0] = "changed"
	if dtype.All()[0] != dtype.Float32 || dtype.Names()[0] != "float32" || dtype.Float32.String() != "float32" {
		t.Error("changing an answered list changed the package")
	}
}

func TestParseFindsEveryNameInAnyCase(t *testing.T) {
	for _, want := range table {
		for _, name := range []string{want.name, strings.ToUpper(want.name), strings.ToUpper(want.name[:1]) + want.name[1:]} {
			if d, err := dtype.Parse(name); d != want.dtype || err != nil {
				t.Errorf("Parse(%q) answers %v, %v; expected %v", name, d, err, want.dtype)
			}
		}
	}
}

func TestParseRefusesOtherNamesAndListsTheKnownOnes(t *testing.T) {
	for _, name := range []string{"", "float", "float8", " float32", "float32 ", "f4", "dtype(3)", "int16", "complex"} {
		_, err := dtype.Parse(name)
		want := fmt.Sprintf("dtype.Parse: unknown dtype %q; known are float32, float64, int32, int64, complex64, complex128, float16, bfloat16", name)
		if !errors.Is(err, weir.ErrArgument) || err.Error() != want {
			t.Errorf("Parse(%q):\ngot      %v\nexpected %s", name, err, want)
		}
	}
}

func TestEveryGoTypeHasTheTypeOfItsSize(t *testing.T) {
	got := []dtype.DType{
		of[float32](t), of[float64](t), of[int32](t), of[int64](t),
		of[complex64](t), of[complex128](t), of[float16.Float16](t), of[dtype.BF16](t),
	}
	if !slices.Equal(got, dtype.All()) {
		t.Errorf("the Go types are those of %v; expected %v", got, dtype.All())
	}
}

func of[T dtype.Element](t *testing.T) dtype.DType {
	d := dtype.Of[T]()
	var zero T
	if got := int64(unsafe.Sizeof(zero)); got != d.Size() {
		t.Errorf("Of[%T] is %v of %d bytes; the Go type has %d", zero, d, d.Size(), got)
	}
	return d
}
