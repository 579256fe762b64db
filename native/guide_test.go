package native_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/native"
	"github.com/weirgo/weir/tensor"
)

// guide:begin
func scale(ctx context.Context, path string) error {
	session, err := native.NewSession(ctx)
	if err != nil {
		return err
	}
	defer session.Close()
	lib, err := native.Open(ctx, "scale", path, native.Exports{
		CheckABI: "sc_check_abi", LastError: "sc_last_error", LastErrorKind: "sc_last_error_kind",
	})
	if err != nil {
		return err
	}
	x, err := tensor.From(ctx, []float32{1, 2, 3})
	if err != nil {
		return err
	}

	// A short call: the array is lent while the function runs.
	var call func(handle unsafe.Pointer, x *native.View, factor float64, sum *float64) int32
	if err := lib.Func("scale", "sc_scale", &call); err != nil {
		return err
	}
	var sum float64
	err = session.Do(ctx, func(sc *native.Scope) error {
		return lib.Check("scale", func() int32 { return call(sc.Handle(), sc.View(0), 2, &sum) })
	}, native.InOut(x))
	if err != nil {
		return err
	}
	fmt.Println(sum, x)

	// The same as a job: other goroutines run while it does.
	job, err := lib.Job("scale", "sc_scale_job", native.Handle, native.ViewInOut, native.Float64, native.OutFloat64)
	if err != nil {
		return err
	}
	if err := job.Run(ctx, session, "scale", x, 0.5, &sum); err != nil {
		return err
	}
	fmt.Println(sum, x)
	return nil
}

// guide:end

// TestTheGuidesLibraryIsBuiltAndCalled builds docs/native.md's example as it says,
// where CMake and a C++ compiler are, runs its program, and holds the guide to these
// files.
func TestTheGuidesLibraryIsBuiltAndCalled(t *testing.T) {
	page, err := os.ReadFile("../docs/native.md")
	if err != nil {
		t.Skip(err) // not in a bundle of tests
	}
	own := string(must(os.ReadFile("guide_test.go")))
	_, own, _ = strings.Cut(own, "// guide:begin\n")
	own, _, _ = strings.Cut(own, "\n// guide:end")
	for name, text := range map[string]string{
		"scale.cpp": string(must(os.ReadFile("testdata/scale/scale.cpp"))), "CMakeLists.txt": string(must(os.ReadFile("testdata/scale/CMakeLists.txt"))), "scale": own,
	} {
		if !strings.Contains(string(page), text) {
			t.Errorf("docs/native.md does not have %s as it is here", name)
		}
	}
	if !onHost() {
		t.Skip("the library is for host devices")
	}
	ctx := start(t)
	prefix := filepath.Join(os.Getenv(pathVariable), "prefix")
	if _, err := os.Stat(prefix); err != nil {
		t.Skip(err)
	}
	build := t.TempDir()
	for _, args := range [][]string{{"-S", "testdata/scale", "-B", build, "-DCMAKE_PREFIX_PATH=" + prefix}, {"--build", build}} {
		if out, err := exec.Command("cmake", args...).CombinedOutput(); err != nil {
			if _, missing := err.(*exec.Error); missing {
				t.Skip(err)
			}
			t.Fatalf("%v\n%s", err, out)
		}
	}
	if err := scale(ctx, filepath.Join(build, "libscale.so")); err != nil {
		t.Error(err)
	}
	_, program, _ := strings.Cut(string(page), "```go\n")
	program, _, _ = strings.Cut(program, "```")
	main := filepath.Join(build, "main.go")
	if err := os.WriteFile(main, []byte(program), 0o666); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "run", main, filepath.Join(build, "libscale.so")).CombinedOutput(); err != nil || string(out) != "12 float32 3 on host:0\n[2 4 6]\n6 float32 3 on host:0\n[1 2 3]\n" {
		t.Errorf("the guide's program: %v\n%s", err, out)
	}
	lib := must(native.Open(ctx, "scale", filepath.Join(build, "libscale.so"), native.Exports{CheckABI: "sc_check_abi", LastError: "sc_last_error", LastErrorKind: "sc_last_error_kind"}))
	var sum float64
	err = job(t, lib, "sc_scale_job", native.Handle, native.ViewInOut, native.Float64, native.OutFloat64).
		Run(ctx, newSession(t, ctx), "scale", must(tensor.Zeros(ctx, tensor.Float32, 2, 2)), 2, &sum)
	says(t, err, weir.KindLogic, "scale: x: expected rank 1, got 2")
}

func TestTheExampleProgramFindsItsClusters(t *testing.T) {
	if !onHost() {
		t.Skip("it runs on the host device")
	}
	if _, err := os.Stat("../examples/native-canary/main.go"); err != nil {
		t.Skip(err)
	}
	ctx := start(t)
	openCanary(t, ctx) // or it is skipped
	program := filepath.Join(t.TempDir(), "program.exe")
	if out, err := exec.Command("go", "build", "-o", program, "../examples/native-canary").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command(program).CombinedOutput()
	points, total := 0, 0
	for line := range strings.Lines(string(out)) {
		var cluster, n, rows, cols int
		if _, err := fmt.Sscanf(line, "cluster %d has %d points; their array is [%d %d]", &cluster, &n, &rows, &cols); err == nil && rows == n && cols == 2 {
			points++
			total += n
		}
	}
	if err != nil || points != 3 || total != 300 {
		t.Errorf("%v\n%s", err, out)
	}
}
