package examples

import (
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var update = flag.Bool("update", false, "write what the programs print to testdata")

// TestEveryExamplePrintsWhatItIsSaidTo builds each program, runs it in the
// module's root and compares all that it prints.
func TestEveryExamplePrintsWhatItIsSaidTo(t *testing.T) {
	programs, err := filepath.Glob("[0-9][0-9]-*")
	if err != nil || len(programs) < 4 {
		t.Fatalf("%q, %v; expected four programs or more", programs, err)
	}
	for _, name := range programs {
		t.Run(name, func(t *testing.T) {
			binary := filepath.Join(t.TempDir(), name+".exe")
			if out, err := exec.Command("go", "build", "-o", binary, "./"+name).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			run := exec.Command(binary)
			run.Dir = ".."
			got, err := run.Output()
			if err != nil {
				exit, _ := errors.AsType[*exec.ExitError](err)
				t.Fatalf("%v\n%s%s", err, got, exit.Stderr)
			}
			golden := filepath.Join("testdata", name+".txt")
			if *update {
				if err := os.WriteFile(golden, got, 0o666); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("%s prints something else than %s (-want +got):\n%s", name, golden, diff)
			}
		})
	}
}
