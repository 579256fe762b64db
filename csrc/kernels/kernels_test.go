package kernels_test

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/bits"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirgo/weir/csrc/kernels"
)

func TestTheFatBinaryIsAsNewAsItsSources(t *testing.T) {
	script, err := os.ReadFile("build.sh")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(script), "\nsources=\"")
	list, _, _ = strings.Cut(list, `"`)
	hash := sha256.New()
	for _, name := range strings.Fields(list) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		hash.Write(text)
	}
	sum, err := os.ReadFile("kernels.sum")
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("%x", hash.Sum(nil)); strings.TrimSpace(string(sum)) != want {
		t.Errorf("kernels.fatbin was made from sources with hash %s; they have %s now: run make kernels", sum, want)
	}
}

func TestTheFatBinaryIsOne(t *testing.T) {
	const magic = 0xba55ed50 // of every fat binary, in CUDA's fatbinary_section.h
	if got := binary.LittleEndian.Uint32(kernels.Fatbin); got != magic {
		t.Errorf("kernels.fatbin begins with %#x; expected %#x", got, magic)
	}
}

// TestGoAndCAgreeOnTheParameters has a C++ program say where each field lies.
func TestGoAndCAgreeOnTheParameters(t *testing.T) {
	compiler, err := exec.LookPath("g++")
	if err != nil {
		t.Skip("no g++")
	}
	names := map[string]string{"InnerCount": "inner_count", "LDA": "lda", "LDB": "ldb", "LDC": "ldc", "StrideA": "stride_a",
		"StrideB": "stride_b", "StrideC": "stride_c", "TransA": "trans_a", "TransB": "trans_b"}
	var program, want strings.Builder
	program.WriteString("#include \"params.h\"\n#include <stddef.h>\n#include <stdio.h>\nint main() {\n")
	for c, params := range map[string]reflect.Type{"weir_views": reflect.TypeFor[kernels.Views](), "weir_product": reflect.TypeFor[kernels.Product]()} {
		for i := range params.NumField() {
			f := params.Field(i)
			name := names[f.Name]
			if name == "" {
				name = strings.ToLower(f.Name)
			}
			fmt.Fprintf(&program, "printf(\"%s.%s %%zu %%zu\\n\", offsetof(%[1]s, %[2]s), sizeof(%[1]s::%[2]s));\n", c, name)
			fmt.Fprintf(&want, "%s.%s %d %d\n", c, name, f.Offset, f.Type.Size())
		}
		fmt.Fprintf(&program, "printf(\"%s %%zu\\n\", sizeof(%[1]s));\n", c)
		fmt.Fprintf(&want, "%s %d\n", c, params.Size())
	}
	fmt.Fprintf(&program, "printf(\"%%d %%d\\n\", WEIR_MAX_AXES, WEIR_BLOCK);\n}\n")
	fmt.Fprintf(&want, "%d %d\n", kernels.MaxAxes, kernels.Block)
	file := filepath.Join(t.TempDir(), "layout")
	if err := os.WriteFile(file+".cc", []byte(program.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), compiler, "-I.", "-o", file, file+".cc").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got, err := exec.CommandContext(t.Context(), file).Output()
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want.String() {
		t.Errorf("C has\n%s\nGo has\n%s", got, want.String())
	}
}

func TestDivideGivesTheQuotientOfEveryNarrowNumber(t *testing.T) {
	quotient := func(i, n int64) uint32 {
		var v kernels.Views
		v.Extent[3] = n
		v.Divide(3)
		high, _ := bits.Mul32(uint32(i), v.Magic[3])
		return (high + uint32(i)) >> v.Shift[3]
	}
	const end = 1 << 31
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.OneOf(rapid.Int64Range(1, 100), rapid.Int64Range(1, end-1)).Draw(t, "n")
		k := rapid.Int64Range(0, (end-1)/n).Draw(t, "k")
		for _, i := range []int64{k * n, k*n - 1, k*n + n - 1, end - 1, rapid.Int64Range(0, end-1).Draw(t, "i")} {
			if i >= 0 && i < end && int64(quotient(i, n)) != i/n {
				t.Fatalf("%d / %d is %d; the kernels have %d", i, n, i/n, quotient(i, n))
			}
		}
	})
}
