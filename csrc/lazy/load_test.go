package lazy

import (
	"debug/elf"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// same fails with both texts unless they are equal.
func same(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got\n%s\nexpected\n%s", what, got, want)
	}
}

func TestTheFirstCallAndLaterOnesReachTheLibraryWithAllArguments(t *testing.T) {
	want := map[string]string{
		"many":     "1 2.5 3 4.5 five 6 7 8.5 9 10 11.5 12.5 13.5 14.5 15.5 16.5 17.5 eighteen\n",
		"variadic": "1 2.5 three 4 5.5\n",
		"complex":  "-5 10\n",
		"large":    "1 2 3 4\n",
		"text":     "'five'\n",
	}
	onEach(t, func(t *testing.T, b *bench) {
		path := b.library(t, "libweirfake.so.7", "fake_library.c", "-DVERSION=7")
		for call, answer := range want {
			same(t, call, b.run(t, path, nil, "call", call, call), answer+answer)
		}
	})
}

func TestThreadsThatCallFirstTogetherAllReachTheLibrary(t *testing.T) {
	onEach(t, func(t *testing.T, b *bench) {
		path := b.library(t, "libweirfake.so.7", "fake_library.c", "-DVERSION=7")
		same(t, "threads", b.run(t, path, nil, "threads"), "0 of 16 went wrong\n")
	})
}

func TestWithoutALibraryEveryFunctionAnswersItsSubstitute(t *testing.T) {
	onEach(t, func(t *testing.T, b *bench) {
		same(t, "calls", b.run(t, "", nil, "call", "version", "absent", "text", "swapped"), "77\n77\n''\n42\n")
	})
}

func TestAFunctionThatTheLibraryLacksAnswersTheMissingCode(t *testing.T) {
	onEach(t, func(t *testing.T, b *bench) {
		path := b.library(t, "libweirfake.so.7", "fake_library.c", "-DVERSION=7")
		same(t, "calls", b.run(t, path, nil, "call", "absent", "version", "swapped"), "77\n7\n42\n")
	})
}

func TestNamedFoldersAreSearchedInOrderAndTheBestNameFirst(t *testing.T) {
	onEach(t, func(t *testing.T, b *bench) {
		seven := b.library(t, "libweirfake.so.7", "fake_library.c", "-DVERSION=7")
		six := b.library(t, "libweirfake.so.6", "fake_library.c", "-DVERSION=6")
		empty := t.TempDir()
		for path, version := range map[string]string{
			seven:                           "7\n",
			six:                             "6\n",
			empty + ":" + six + ":" + seven: "6\n",
			":" + seven + "::" + six + ":":  "7\n",
			"/nonexistent:" + empty + ":::": "77\n",
		} {
			same(t, path, b.run(t, path, nil, "call", "version"), version)
		}
		data, err := os.ReadFile(filepath.Join(six, "libweirfake.so.6"))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(seven, "libweirfake.so.6"), data, 0o755); err != nil {
			t.Fatal(err)
		}
		same(t, "both in one folder", b.run(t, seven, nil, "call", "version"), "7\n")
	})
}

func TestAFileThatIsNoLibraryIsPassedOver(t *testing.T) {
	onEach(t, func(t *testing.T, b *bench) {
		six := b.library(t, "libweirfake.so.6", "fake_library.c", "-DVERSION=6")
		if err := os.WriteFile(filepath.Join(six, "libweirfake.so.7"), []byte("no library"), 0o755); err != nil {
			t.Fatal(err)
		}
		same(t, "version", b.run(t, six, nil, "call", "version"), "6\n")
	})
}

func TestTheReasonNamesTheLibraryAndWhereItWasLookedFor(t *testing.T) {
	onEach(t, func(t *testing.T, b *bench) {
		other := "other path \nother reason it is not linked into this program\nother has 0\n"
		absent := func(soname string) string {
			return soname + ": cannot open shared object file: No such file or directory"
		}

		same(t, "no folders", b.run(t, "", nil, "call", "ask"),
			"path \nreason libweirfake.so.7 or libweirfake.so.6 was not found where the system keeps libraries, and WEIR_CUDA_LIBRARY_PATH names no folder: "+
				absent("libweirfake.so.7")+"; "+absent("libweirfake.so.6")+"\nhas 0 0\n"+other)

		broken := t.TempDir()
		file := filepath.Join(broken, "libweirfake.so.7")
		if err := os.WriteFile(file, []byte("no library"), 0o755); err != nil {
			t.Fatal(err)
		}
		same(t, "a broken file", b.run(t, broken, nil, "call", "ask"),
			"path \nreason libweirfake.so.7 or libweirfake.so.6 was found neither in WEIR_CUDA_LIBRARY_PATH ("+broken+") nor where the system keeps libraries: "+
				file+": file too short; "+absent("libweirfake.so.7")+"; "+absent("libweirfake.so.6")+"\nhas 0 0\n"+other)

		path := b.library(t, "libweirfake.so.7", "fake_library.c", "-DVERSION=7")
		same(t, "found", b.run(t, path, nil, "call", "ask"),
			"path "+filepath.Join(path, "libweirfake.so.7")+"\nreason \nhas 1 0\n"+other)
	})
}

func TestALongSearchPathCutsTheReasonAndCrashesNothing(t *testing.T) {
	onEach(t, func(t *testing.T, b *bench) {
		path := strings.Repeat("/nonexistent/"+strings.Repeat("x", 500)+":", 40)
		out := b.run(t, path, nil, "call", "version", "ask")
		if !strings.HasPrefix(out, "77\npath \nreason libweirfake.so.7 or libweirfake.so.6 was found neither in ") {
			t.Errorf("got %.200s", out)
		}
	})
}

func TestADriverThatIsAbsentOrRefusesLeavesNoDeviceAndTheReason(t *testing.T) {
	onEach(t, func(t *testing.T, b *bench) {
		driver := b.library(t, "libweirfakecuda.so.1", "fake_driver.c")
		file := filepath.Join(driver, "libweirfakecuda.so.1")
		hollow := b.library(t, "libweirfakecuda.so.1", "fake_driver.c", "-DWITHOUT_INIT")
		foreign := b.library(t, "libweirfakecuda.so.1", "fake_extra.c")

		none := "init 0, count 0: 0 devices, missing 500\n"
		same(t, "a driver", b.run(t, driver, nil, "init"), "init 0, count 0: 2 devices, missing 500\n\n")
		same(t, "no device", b.run(t, driver, []string{"FAKE_INIT=100"}, "init"), none+"cuInit of "+file+" answers CUDA_ERROR_NO_DEVICE (100)\n")
		same(t, "an unknown refusal", b.run(t, driver, []string{"FAKE_INIT=999"}, "init"), none+"cuInit of "+file+" answers an error (999)\n")
		same(t, "no cuInit", b.run(t, hollow, nil, "init"), none+filepath.Join(hollow, "libweirfakecuda.so.1")+" has no cuInit\n")
		same(t, "another library by this name", b.run(t, foreign, nil, "init"),
			none+"a library was found by the name of libweirfakecuda.so.1, but it has none of its functions\n")
		same(t, "no driver", b.run(t, "", nil, "init"),
			none+"libweirfakecuda.so.1 was not found where the system keeps libraries, and WEIR_CUDA_LIBRARY_PATH names no folder: libweirfakecuda.so.1: cannot open shared object file: No such file or directory\n")
	})
}

func TestProgramsShowNoTrampolineAndNeedNoLibrary(t *testing.T) {
	machines := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}
	onEach(t, func(t *testing.T, b *bench) {
		for _, program := range []string{"call", "init"} {
			f, err := elf.Open(filepath.Join(b.folder, program))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if f.Machine != machines[b.arch] {
				t.Errorf("%s is for %v", program, f.Machine)
			}
			all, err := f.Symbols()
			if err != nil {
				t.Fatal(err)
			}
			dynamic, err := f.DynamicSymbols()
			if err != nil {
				t.Fatal(err)
			}
			ours := func(symbols []elf.Symbol) (found []string) {
				for _, s := range symbols {
					if strings.HasPrefix(s.Name, "fake") || strings.HasPrefix(s.Name, "cu") || strings.HasPrefix(s.Name, "weir_") {
						found = append(found, s.Name)
					}
				}
				return found
			}
			if len(ours(all)) < 8 {
				t.Errorf("%s: %d trampolines are linked in; the test looks for the wrong names", program, len(ours(all)))
			}
			if shown := ours(dynamic); len(shown) > 0 {
				t.Errorf("%s shows %v to libraries", program, shown)
			}
			needed, err := f.ImportedLibraries()
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range needed {
				if strings.Contains(name, "fake") {
					t.Errorf("%s needs %s", program, name)
				}
			}
		}
	})
}

func TestACompilerOfAnotherArchitectureIsAnErrorThatCarriesItsWords(t *testing.T) {
	onEach(t, func(t *testing.T, b *bench) {
		fake, err := fakeList()
		if err != nil {
			t.Fatal(err)
		}
		other := map[string]string{"amd64": "arm64", "arm64": "amd64"}[b.arch]
		err = Build(t.Context(), t.TempDir(), []Library{fake}, other, []string{b.compiler})
		if err == nil || !strings.Contains(err.Error(), "fake_trampolines.S") || !strings.Contains(err.Error(), "Error:") {
			t.Errorf("got %v", err)
		}
	})
}
