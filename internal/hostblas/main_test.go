package hostblas

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// realLibraries are the OpenBLAS libraries that this machine has: those in the
// folders of WEIR_TEST_OPENBLAS_DIR, and the one that the ordinary search
// finds.
var realLibraries = sync.OnceValue(func() []*external {
	var found []*external
	add := func(dir string) {
		where := usualPlaces()
		where.dir = dir
		e, _, _ := search(where)
		for _, f := range found {
			if e == f {
				return
			}
		}
		if e != nil {
			found = append(found, e)
		}
	}
	for _, dir := range filepath.SplitList(os.Getenv("WEIR_TEST_OPENBLAS_DIR")) {
		add(dir)
	}
	add("")
	return found
})

const noOpenBLAS = "there is no OpenBLAS here: install libopenblas0, or name folders in WEIR_TEST_OPENBLAS_DIR"

// withLibraries runs test with gonum and with each real OpenBLAS, each with a
// budget of its own.
func withLibraries(t *testing.T, cores int, test func(t *testing.T, l *Library)) {
	t.Run("gonum", func(t *testing.T) { test(t, &Library{name: "gonum", cores: newCores(cores), grain: grainNanos}) })
	t.Run("OpenBLAS", func(t *testing.T) {
		if len(realLibraries()) == 0 {
			t.Skip(noOpenBLAS)
		}
		for i, e := range realLibraries() {
			t.Run(fmt.Sprintf("%d,%d-bit", i, map[bool]int{true: 64, false: 32}[e.limit > 1<<31]), func(t *testing.T) {
				test(t, &Library{name: "OpenBLAS", ext: e, path: e.path, cores: newCores(cores), grain: grainNanos})
			})
		}
	})
}

// anOpenBLAS is a Library with one real OpenBLAS.
func anOpenBLAS(t testing.TB, cores int) *Library {
	t.Helper()
	if len(realLibraries()) == 0 {
		t.Skip(noOpenBLAS)
	}
	e := realLibraries()[0]
	return &Library{name: "OpenBLAS", ext: e, path: e.path, cores: newCores(cores), grain: grainNanos}
}
