package npyfile

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/sbinet/npyio/npy"

	"github.com/weirgo/weir/dtype"
)

// codes are NumPy's names of the types as they are written, without byte order.
var codes = map[dtype.DType]string{
	dtype.Float32: "f4", dtype.Float64: "f8", dtype.Int32: "i4", dtype.Int64: "i8",
	dtype.Complex64: "c8", dtype.Complex128: "c16", dtype.Float16: "f2", dtype.BFloat16: "V2",
}

// goTypes maps what npyio answers for a code to the element type.
var goTypes = map[reflect.Type]dtype.DType{
	reflect.TypeFor[float32]():    dtype.Float32,
	reflect.TypeFor[float64]():    dtype.Float64,
	reflect.TypeFor[int32]():      dtype.Int32,
	reflect.TypeFor[int64]():      dtype.Int64,
	reflect.TypeFor[complex64]():  dtype.Complex64,
	reflect.TypeFor[complex128](): dtype.Complex128,
}

func supported() string { return strings.Join(dtype.Names(), ", ") }

// parseDescr reads a type string: a byte order, one of < > = |, and a code.
// Without an order, or with = or |, elements are little-endian. ml_dtypes swaps
// ">V2" like any other type, although NumPy ignores the order of raw bytes.
func parseDescr(descr string) (dt dtype.DType, bigEndian bool, err error) {
	code := descr
	if descr != "" && strings.IndexByte("<>=|", descr[0]) >= 0 {
		code = descr[1:]
	}
	// npyio takes an order too, and a code has just one.
	if code == "" || strings.IndexByte("<>=|", code[0]) >= 0 {
		return 0, false, fmt.Errorf("elements are of unknown type %s; expected one of %s", quote(descr), supported())
	}
	bigEndian = descr[0] == '>'
	switch code {
	case "f2", "float16":
		return dtype.Float16, bigEndian, nil
	case "V2":
		return dtype.BFloat16, bigEndian, nil
	}
	if dt, ok := goTypes[npy.TypeFrom(code)]; ok {
		return dt, bigEndian, nil
	}
	what, hint := explain(code)
	return 0, false, fmt.Errorf("elements are %s (%s); expected one of %s; %s", what, quote(descr), supported(), hint)
}

// explain names a type that Weir lacks and says how to save it otherwise.
func explain(code string) (what, hint string) {
	astype := func(name string) string { return "convert with a.astype(" + strconv.Quote(name) + ") before saving" }
	switch t := npy.TypeFrom(code); {
	case t == reflect.TypeFor[string]():
		return "strings", astype("float64") + " if they spell numbers"
	case t == reflect.TypeFor[uint32](), t == reflect.TypeFor[uint64]():
		return t.String(), astype("int64")
	case t != nil: // bool and the integers of 8 and 16 bits
		return t.String(), astype("int32")
	}
	size, sized := strconv.Atoi(code[1:])
	switch kind := code[0]; {
	case kind == 'O':
		return "Python objects (pickle)", astype("float64")
	case kind == 'f' && sized == nil && size > 8 && size <= 16:
		return fmt.Sprintf("float%d (long double)", 8*size), astype("float64")
	case kind == 'c' && sized == nil && size > 16 && size <= 32:
		return fmt.Sprintf("complex%d (long double)", 8*size), astype("complex128")
	case strings.HasPrefix(code, "M8"):
		return "datetime64", astype("int64")
	case strings.HasPrefix(code, "m8"):
		return "timedelta64", astype("int64")
	case kind == 'V':
		return "raw bytes (void)", "of these only V2 is known, as bfloat16"
	}
	return "of unknown type", astype("float64")
}

// quote keeps a hostile type string short.
func quote(s string) string {
	if len(s) > 40 {
		return strconv.Quote(s[:40]) + "…"
	}
	return strconv.Quote(s)
}
