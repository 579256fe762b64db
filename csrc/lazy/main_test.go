package lazy

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		for _, b := range benches {
			os.RemoveAll(b.folder)
		}
		os.Exit(code)
	}))
}
