//go:build unix

package lazy

import (
	"debug/elf"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
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
		const none = "missed '', other missed ''\n"
		same(t, "its name, once", b.run(t, path, nil, "call", "missed", "version", "missed", "absent", "missed", "missed"),
			none+"7\n"+none+"77\nmissed 'fakeAbsent', other missed ''\n"+none)
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

		foreign := b.library(t, "libweirfake.so.7", "fake_extra.c")
		same(t, "another library", b.run(t, "", []string{"LD_LIBRARY_PATH=" + foreign}, "call", "ask"),
			"path \nreason libweirfake.so.7 or libweirfake.so.6 was not found where the system keeps libraries, and WEIR_CUDA_LIBRARY_PATH names no folder: "+
				filepath.Join(foreign, "libweirfake.so.7")+": it has none of the functions of this library; "+absent("libweirfake.so.6")+"\nhas 0 0\n"+other)

		for what, c := range map[string]struct {
			seven func(file string) error
			why   string
		}{
			"a folder by this name": {func(file string) error { return os.Mkdir(file, 0o755) }, "it is not a file"},
			"a pipe":                {func(file string) error { return syscall.Mkfifo(file, 0o644) }, "it is not a file"},
			"a link in a circle":    {func(file string) error { return os.Symlink(file, file) }, "Too many levels of symbolic links"},
		} {
			folder := t.TempDir()
			file := filepath.Join(folder, "libweirfake.so.7")
			if err := c.seven(file); err != nil {
				t.Fatal(err)
			}
			same(t, what, b.run(t, folder, nil, "call", "ask"),
				"path \nreason libweirfake.so.7 or libweirfake.so.6 was found neither in WEIR_CUDA_LIBRARY_PATH ("+folder+") nor where the system keeps libraries: "+
					file+": "+c.why+"; "+absent("libweirfake.so.7")+"; "+absent("libweirfake.so.6")+"\nhas 0 0\n"+other)
		}

		path := b.library(t, "libweirfake.so.7", "fake_library.c", "-DVERSION=7")
		same(t, "found", b.run(t, path, nil, "call", "ask"),
			"path "+filepath.Join(path, "libweirfake.so.7")+"\nreason \nhas 1 0\n"+other)
	})
}

func TestAFileOrFolderThatMayNotBeReadIsNamed(t *testing.T) {
	onEach(t, func(t *testing.T, b *bench) {
		top, err := os.MkdirTemp("", "weir-lazy-test-") // not t.TempDir, which another user cannot enter
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(top)
		closed, unread := filepath.Join(top, "closed"), filepath.Join(top, "unread")
		file := filepath.Join(unread, "libweirfake.so.7")
		err = errors.Join(os.Mkdir(closed, 0), os.Mkdir(unread, 0o755), os.WriteFile(file, nil, 0), os.Chmod(top, 0o755), os.Chmod(b.folder, 0o755))
		if err != nil {
			t.Fatal(err)
		}
		path := closed + ":" + unread
		cmd := b.command(t, path, nil, "call", "ask")
		if os.Geteuid() == 0 { // who may read everything
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		same(t, "reason", string(out), "path \nreason libweirfake.so.7 or libweirfake.so.6 was found neither in WEIR_CUDA_LIBRARY_PATH ("+path+") nor where the system keeps libraries: "+
			closed+"/libweirfake.so.7: Permission denied; "+closed+"/libweirfake.so.6: Permission denied; "+
			file+": cannot open shared object file: Permission denied; "+
			"libweirfake.so.7: cannot open shared object file: No such file or directory; libweirfake.so.6: cannot open shared object file: No such file or directory\n"+
			"has 0 0\nother path \nother reason it is not linked into this program\nother has 0\n")
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
		t.Setenv("CUDA_VISIBLE_DEVICES", "") // Unsetenv alone would not put it back
		if err := os.Unsetenv("CUDA_VISIBLE_DEVICES"); err != nil {
			t.Fatal(err)
		}
		same(t, "no device", b.run(t, driver, []string{"FAKE_INIT=100"}, "init"), none+"cuInit of "+file+" answers CUDA_ERROR_NO_DEVICE (100)\n")
		for _, visible := range []string{"", "-1", "0,7"} {
			env := []string{"FAKE_INIT=100", "CUDA_VISIBLE_DEVICES=" + visible}
			same(t, "none visible", b.run(t, driver, env, "init"),
				none+"cuInit of "+file+" answers CUDA_ERROR_NO_DEVICE (100), with CUDA_VISIBLE_DEVICES=\""+visible+"\"\n")
		}
		same(t, "an unknown refusal", b.run(t, driver, []string{"FAKE_INIT=999"}, "init"), none+"cuInit of "+file+" answers an error (999)\n")
		same(t, "no cuInit", b.run(t, hollow, nil, "init"), none+filepath.Join(hollow, "libweirfakecuda.so.1")+" has no cuInit\n")
		same(t, "another library by this name", b.run(t, foreign, nil, "init"),
			none+"libweirfakecuda.so.1 was found neither in WEIR_CUDA_LIBRARY_PATH ("+foreign+") nor where the system keeps libraries: "+
				filepath.Join(foreign, "libweirfakecuda.so.1")+": it has none of the functions of this library; "+
				"libweirfakecuda.so.1: cannot open shared object file: No such file or directory\n")
		same(t, "another library before the driver", b.run(t, foreign+":"+driver, nil, "init"), "init 0, count 0: 2 devices, missing 500\n\n")
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
