package npyfile

import (
	"errors"
	"testing"

	"go.uber.org/goleak"

	"github.com/weirgo/weir"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// wantError checks an error's whole text, and what every error of the package
// has: operation and sentinel.
func wantError(t *testing.T, err error, text string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error; expected %q", text)
	}
	if err.Error() != "npy: "+text {
		t.Errorf("error\n  %s\nexpected\n  npy: %s", err, text)
	}
	if e, ok := errors.AsType[*weir.Error](err); !ok || e.Op != "npy" || !errors.Is(err, weir.ErrArgument) {
		t.Errorf("error %v is no *weir.Error of npy that matches ErrArgument", err)
	}
}

const known = "float32, float64, int32, int64, complex64, complex128, float16, bfloat16"
