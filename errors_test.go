package weir_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirgo/weir"
)

var sentinels = map[string]error{
	"invalid argument":      weir.ErrArgument,
	"out of memory":         weir.ErrOutOfMemory,
	"closed":                weir.ErrClosed,
	"stale handle":          weir.ErrStale,
	"access conflict":       weir.ErrBusy,
	"never written":         weir.ErrUninitialized,
	"poisoned":              weir.ErrPoisoned,
	"not supported":         weir.ErrNotSupported,
	"no such device":        weir.ErrNoDevice,
	"no runtime is started": weir.ErrNotStarted,
	"device lost":           weir.ErrDeviceLost,
	"leaked":                weir.ErrLeak,
}

func TestASentinelMatchesItselfAloneThroughAnyNumberOfCauses(t *testing.T) {
	for text, sentinel := range sentinels {
		if sentinel.Error() != text {
			t.Errorf("a sentinel reads %q; expected %q", sentinel, text)
		}
		err := fmt.Errorf("reading weights: %w", &weir.Error{Op: "outer", Err: &weir.Error{Op: "inner", Err: sentinel}})
		for other, s := range sentinels {
			if errors.Is(err, s) != (other == text) {
				t.Errorf("an error caused by %q: Is %q answers %t", text, other, errors.Is(err, s))
			}
		}
	}
}

func TestAsFindsTheOutermostError(t *testing.T) {
	inner := &weir.Error{Op: "stream.Record", Device: "cuda:1", Stream: "cuda:1/3", Code: 700, Name: "CUDA_ERROR_ILLEGAL_ADDRESS", Kind: weir.KindCUDA}
	err := errors.Join(errors.New("first"), fmt.Errorf("step 2: %w", inner))
	var e *weir.Error
	if !errors.As(err, &e) || e != inner {
		t.Fatalf("As found %v; expected the joined error itself", e)
	}
}

func TestAnErrorIsOneLineOfOperationPlaceMessageAndCause(t *testing.T) {
	cause := &weir.Error{Op: "Pool.Alloc", Device: "host:0", Message: "asked for 8 bytes", Err: weir.ErrOutOfMemory}
	for _, c := range []struct {
		err  weir.Error
		want string
	}{
		{weir.Error{Op: "a.B"}, "a.B"},
		{weir.Error{Op: "a.B", Message: "m"}, "a.B: m"},
		{weir.Error{Op: "a.B", Device: "host:0", Message: "m"}, "a.B on host:0: m"},
		{weir.Error{Op: "a.B", Device: "host:0", Stream: "host:0/3"}, "a.B on stream host:0/3"},
		{weir.Error{Op: "a.B", Name: "E_BAD", Code: 7}, "a.B (E_BAD, code 7)"},
		{weir.Error{Op: "a.B", Code: 7}, "a.B"},
		{weir.Error{Op: "a.B", Message: "m", Err: weir.ErrBusy}, "a.B: m"},
		{weir.Error{Op: "a.B", Err: weir.ErrBusy}, "a.B: access conflict"},
		{weir.Error{Op: "a.B", Message: "m", Err: errors.New("why")}, "a.B: m: why"},
		{weir.Error{Op: "a.B", Message: "m", Name: "E", Code: 3, Err: cause},
			"a.B: m (E, code 3): Pool.Alloc on host:0: asked for 8 bytes"},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("%#v\nreads    %q\nexpected %q", c.err, got, c.want)
		}
	}
}

func TestArgfMakesAnArgumentErrorOfKindLogic(t *testing.T) {
	err := weir.Argf("tensor.From", "shape: got %d axes; expected %d", 2, 3)
	want := &weir.Error{Op: "tensor.From", Kind: weir.KindLogic, Message: "shape: got 2 axes; expected 3", Err: weir.ErrArgument}
	if *err != *want {
		t.Errorf("got %#v; expected %#v", err, want)
	}
	if !errors.Is(err, weir.ErrArgument) {
		t.Error("it does not match ErrArgument")
	}
}

func TestKindsHaveTheNumbersAndNamesOfTheNativeInterface(t *testing.T) {
	for number, name := range []string{"generic", "out-of-memory", "cuda", "logic"} {
		if got := weir.Kind(number).String(); got != name {
			t.Errorf("kind %d is %q; expected %q", number, got, name)
		}
	}
	if got := weir.Kind(99).String(); got != "generic" {
		t.Errorf("an unknown kind is %q; expected generic", got)
	}
}

// The cases of testdata/report: one file each, named as here.
var reported = map[string]error{
	"nil": nil,
	"full": &weir.Error{Op: "buffer.New", Device: "cuda:1", Stream: "cuda:1/3", Code: 2, Name: "CUDA_ERROR_OUT_OF_MEMORY",
		Kind: weir.KindOutOfMemory, Message: "asked for 80 bytes; 50 held, of which 40 in use; limit 100", Site: "main.go:12",
		Stack: "main.main()\n\tmain.go:12\n", Err: weir.ErrOutOfMemory},
	"chain": &weir.Error{Op: "flow.MatMul", Message: "poisoned by a.go:7", Err: &weir.Error{Op: "blas.Gemm", Device: "host:0",
		Kind: weir.KindCUDA, Err: errors.New("the library refused")}},
	"join": errors.Join(
		&weir.Error{Op: "runtime.Close", Device: "host:0", Kind: weir.KindLogic, Message: "stream host:0/1 is still held", Err: weir.ErrLeak},
		errors.Join(errors.New("second"), errors.New("third"))),
	"wrapped": fmt.Errorf("loading %s: %w", "weights.npy",
		&weir.Error{Op: "tensor.Load", Message: "the file is short", Kind: weir.KindLogic, Err: weir.ErrArgument}),
	"wrapped-twice": fmt.Errorf("step %d: %w, then %w", 3, weir.ErrClosed, &weir.Error{Op: "a.B", Message: "m"}),
	"plain":         fs.ErrNotExist,
	"two-lines":     &weir.Error{Op: "a.B", Err: errors.New("one\ntwo")},
}

func TestReportRendersEveryCauseForAPerson(t *testing.T) {
	for name, err := range reported {
		t.Run(name, func(t *testing.T) {
			want, rerr := os.ReadFile(filepath.Join("testdata", "report", name+".txt"))
			if rerr != nil {
				t.Fatal(rerr)
			}
			if diff := cmp.Diff(string(want), weir.Report(err)); diff != "" {
				t.Errorf("the report differs (- expected, + got):\n%s", diff)
			}
		})
	}
}

func TestReportSkipsCausesThatAreNil(t *testing.T) {
	if got, want := weir.Report(withNil{}), "with nil\n"; got != want {
		t.Errorf("got %q; expected %q", got, want)
	}
}

// withNil is an error whose lists of causes hold nothing.
type withNil struct{}

func (withNil) Error() string   { return "with nil" }
func (withNil) Unwrap() []error { return []error{nil} }

func ExampleReport() {
	err := &weir.Error{Op: "tensor.MatMul", Device: "host:0", Kind: weir.KindOutOfMemory,
		Message: "asked for 8000000 bytes", Err: weir.ErrOutOfMemory}
	fmt.Print(weir.Report(err))
	fmt.Println(errors.Is(err, weir.ErrOutOfMemory))
	// Output:
	// tensor.MatMul: asked for 8000000 bytes
	//   kind: out-of-memory
	//   device: host:0
	//   because:
	//     out of memory
	// true
}
