package npyfile

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/weirgo/weir/dtype"
)

// TestNumPyLoadsWhatIsWritten asks NumPy itself, where it is installed.
func TestNumPyLoadsWhatIsWritten(t *testing.T) {
	if err := exec.CommandContext(t.Context(), "python3", "-c", "import numpy, ml_dtypes").Run(); err != nil {
		t.Skipf("python3 with numpy and ml_dtypes: %v", err)
	}
	folder := t.TempDir()
	var arrays []Named
	for _, dt := range dtype.All() {
		for order, fortran := range map[string]bool{"C": false, "F": true} {
			a := Named{fmt.Sprintf("%v-%s", dt, order), dt, []int64{2, 3}, fortran, referenceData(dt, fortran)}
			if err := WriteFile(t.Context(), filepath.Join(folder, a.Name+".npy"), a.DType, a.Shape, a.Fortran, a.Data); err != nil {
				t.Fatal(err)
			}
			arrays = append(arrays, a)
		}
	}
	arrays = append(arrays, Named{"", dtype.Float64, []int64{2, 3}, false, referenceData(dtype.Float64, false)})
	if err := WriteNPZ(t.Context(), filepath.Join(folder, "all.npz"), arrays); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "python3", "-B", "testdata/check.py", folder).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
