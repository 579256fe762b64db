// Package sdk has no code: install.sh is what it tests, with a python3 of its
// own that installs nothing of NVIDIA's.
package sdk

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// python stands for python3 with pip. It notes each installation in $PIP_LOG and
// lays a few files, or fails as $PIP says.
const python = `#!/bin/sh
[ "$1 $2" = '-m pip' ] || exit 9
[ "$3" = --version ] && { [ "$PIP" != none ]; exit; }
echo "$@" >>"$PIP_LOG"
[ "$PIP" = fails ] && { echo 'pip: no index' >&2; exit 1; }
while [ "$1" != --requirement ]; do shift; done
if [ "${2##*/}" = raft-requirements.txt ]; then
	for file in libraft/include/raft/core/handle.hpp librmm/lib64/librmm.so cmake/data/bin/cmake; do
		mkdir -p "$4/${file%/*}"
		echo "$PIP" >"$4/$file"
	done
	[ "$PIP" = hollow ] && rm "$4/librmm/lib64/librmm.so"
	exit 0
fi
while [ "$1" != --target ]; do shift; done
mkdir -p "$2/nvidia/cu13/include" "$2/nvidia/cu13/lib"
echo '#define CUDA_VERSION 13000' >"$2/nvidia/cu13/include/cuda.h"
echo "$PIP" >"$2/nvidia/cu13/lib/libcublas.so.13"
[ "$PIP" = hollow ] && rm "$2/nvidia/cu13/include/cuda.h"
exit 0
`

// world is a home, a PATH whose python3 is the one above, and its log.
type world struct {
	home, bin, log string
	scripts        string   // install.sh and its requirements
	sdk            []string // which the script is to install
}

func newWorld(t *testing.T) *world {
	t.Helper()
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("the wheels are for x86-64 Linux")
	}
	if _, err := os.Stat("/usr/local/cuda/include/cuda.h"); err == nil {
		t.Skip("a toolkit is installed here")
	}
	w := &world{home: t.TempDir(), bin: t.TempDir(), scripts: "."}
	w.log = filepath.Join(w.bin, "log")
	if err := os.WriteFile(filepath.Join(w.bin, "python3"), []byte(python), 0o755); err != nil {
		t.Fatal(err)
	}
	return w
}

// install runs the script and answers its exit code and all that it says.
func (w *world) install(t *testing.T, env ...string) (code int, said string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", append([]string{filepath.Join(w.scripts, "install.sh")}, w.sdk...)...)
	cmd.Env = append([]string{"PATH=" + w.bin + ":/usr/bin:/bin", "HOME=" + w.home, "PIP=works", "PIP_LOG=" + w.log}, env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String()
}

// expect fails unless the script ended with this code and these words.
func (w *world) expect(t *testing.T, code int, said string, env ...string) {
	t.Helper()
	if c, s := w.install(t, env...); c != code || s != said {
		t.Errorf("got %d\n%s\nexpected %d\n%s", c, s, code, said)
	}
}

// installations is how often pip was to install.
func (w *world) installations(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile(w.log)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return bytes.Count(text, []byte("\n"))
}

func (w *world) target() string { return filepath.Join(w.home, ".cache/weir/cuda-13.0") }

// beside lists the folder of target.
func beside(t *testing.T, target string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(target))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func fresh(target string) string {
	return "cuda-sdk: installing CUDA 13.0 (0.9 GB to download, 1.3 GB installed) into " + target + "\ncuda-sdk: installed\n"
}

func TestTheWheelsAreInstalledOnceWithLinksForTheLinker(t *testing.T) {
	w := newWorld(t)
	w.expect(t, 0, fresh(w.target()))
	w.expect(t, 0, "cuda-sdk: "+w.target()+" is up to date\n")
	if n := w.installations(t); n != 1 {
		t.Errorf("pip ran %d times", n)
	}
	root := filepath.Join(w.target(), "nvidia/cu13")
	for link, to := range map[string]string{"lib/libcublas.so": "libcublas.so.13", "lib64": "lib"} {
		if got, err := os.Readlink(filepath.Join(root, link)); err != nil || got != to {
			t.Errorf("%s leads to %s %v; expected %s", link, got, err, to)
		}
	}
	if names := beside(t, w.target()); len(names) != 1 {
		t.Errorf("left over: %v", names)
	}
	log, err := os.ReadFile(w.log)
	if err != nil {
		t.Fatal(err)
	}
	for _, flag := range []string{"--no-deps", "--require-hashes", "--only-binary=:all:", "/requirements.txt"} {
		if !strings.Contains(string(log), flag) {
			t.Errorf("pip was not given %s: %s", flag, log)
		}
	}
}

func TestTheFolderCanBeNamed(t *testing.T) {
	w := newWorld(t)
	xdg, named := filepath.Join(w.home, "x d g"), filepath.Join(w.home, "named", "folder")
	w.expect(t, 0, fresh(xdg+"/weir/cuda-13.0"), "XDG_CACHE_HOME="+xdg)
	w.expect(t, 0, fresh(named), "XDG_CACHE_HOME="+xdg, "WEIR_CUDA_SDK="+named)
}

func TestNewRequirementsReplaceTheOldInstallation(t *testing.T) {
	w := newWorld(t)
	w.scripts = t.TempDir()
	for _, name := range []string{"install.sh", "requirements.txt"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(w.scripts, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	w.expect(t, 0, fresh(w.target()))
	if err := os.WriteFile(filepath.Join(w.scripts, "requirements.txt"), []byte("other==1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	w.expect(t, 0, fresh(w.target()), "PIP=newer")
	text, err := os.ReadFile(filepath.Join(w.target(), "nvidia/cu13/lib/libcublas.so.13"))
	if err != nil || string(text) != "newer\n" {
		t.Errorf("got %q %v", text, err)
	}
	if names := beside(t, w.target()); len(names) != 1 {
		t.Errorf("left over: %v", names)
	}

	// A failure keeps what was there.
	if err := os.WriteFile(filepath.Join(w.scripts, "requirements.txt"), []byte("third==1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if code, said := w.install(t, "PIP=fails"); code != 1 {
		t.Errorf("got %d %s", code, said)
	}
	if text, err := os.ReadFile(filepath.Join(w.target(), "nvidia/cu13/lib/libcublas.so.13")); err != nil || string(text) != "newer\n" {
		t.Errorf("got %q %v", text, err)
	}
}

func TestAFailureSaysWhatToDoAndLeavesNothing(t *testing.T) {
	begun := "cuda-sdk: installing CUDA 13.0 (0.9 GB to download, 1.3 GB installed) into "
	for pip, words := range map[string]string{
		"fails":  "pip: no index\ncuda-sdk: pip could not install the wheels; what it said is above. Without a package index: install NVIDIA's CUDA toolkit, 12 or later, and name it with CUDA_HOME\n",
		"hollow": "cuda-sdk: the wheels hold no nvidia/cu13/include/cuda.h\n",
	} {
		w := newWorld(t)
		w.expect(t, 1, begun+w.target()+"\n"+words, "PIP="+pip)
		if names := beside(t, w.target()); len(names) != 0 {
			t.Errorf("left over: %v", names)
		}
	}

	w := newWorld(t)
	w.expect(t, 1, "cuda-sdk: "+w.bin+"/python3 has no pip; install it, or install NVIDIA's CUDA toolkit, 12 or later, and name it with CUDA_HOME\n", "PIP=none")
}

func TestAFolderOfSomebodyElseIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	w.expect(t, 1, "cuda-sdk: "+w.home+" exists and was not made by this script; name another folder with WEIR_CUDA_SDK\n", "WEIR_CUDA_SDK="+w.home)
	if n := w.installations(t); n != 0 {
		t.Errorf("pip ran %d times", n)
	}
}

func TestAToolkitThatIsNamedIsUsedIfItIsNewEnough(t *testing.T) {
	w := newWorld(t)
	home := t.TempDir()
	write := func(name, text string) {
		if err := os.MkdirAll(filepath.Join(home, "include"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(home, "include", name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	passed := "cuda-sdk: CUDA_HOME=" + home + " is passed over: it has no CUDA 12 or later with cuda.h, cublas_v2.h and cusolverDn.h\n"
	write("cuda.h", "#define CUDA_VERSION 12000\n")
	write("cublas_v2.h", "")
	w.expect(t, 0, passed+fresh(w.target()), "CUDA_HOME="+home)
	write("cusolverDn.h", "")
	w.expect(t, 0, "cuda-sdk: CUDA_HOME names a CUDA toolkit, "+home+"; nothing to install\n", "CUDA_HOME="+home)
	write("cuda.h", "#define CUDA_VERSION 11080\n")
	w.expect(t, 0, passed+"cuda-sdk: "+w.target()+" is up to date\n", "CUDA_HOME="+home)
}

func newRAFTWorld(t *testing.T) (w *world, target, installing string) {
	t.Helper()
	w = newWorld(t)
	w.sdk = []string{"raft"}
	target = filepath.Join(w.home, ".cache/weir/raft-26.10")
	return w, target, "raft-sdk: installing RAFT 26.10 (0.12 GB to download, 0.3 GB installed) into " + target + "\n"
}

func TestRAFTIsInstalledOnceIntoAFolderOfItsOwn(t *testing.T) {
	w, target, installing := newRAFTWorld(t)
	// A toolkit has no RAFT.
	w.expect(t, 0, installing+"raft-sdk: installed\n", "CUDA_HOME=/")
	w.expect(t, 0, "raft-sdk: "+target+" is up to date\n")
	if names := beside(t, target); len(names) != 1 {
		t.Errorf("left over: %v", names)
	}
	named := filepath.Join(w.home, "named")
	w.expect(t, 0, strings.ReplaceAll(installing, target, named)+"raft-sdk: installed\n", "WEIR_RAFT_SDK="+named)
	w.expect(t, 1, "raft-sdk: "+w.home+" exists and was not made by this script; name another folder with WEIR_RAFT_SDK\n", "WEIR_RAFT_SDK="+w.home)
	if n := w.installations(t); n != 2 {
		t.Errorf("pip ran %d times", n)
	}
}

func TestAFailureWithRAFTSaysWhatToDoAndLeavesNothing(t *testing.T) {
	for pip, words := range map[string]string{
		"fails":  "pip: no index\nraft-sdk: pip could not install the wheels; what it said is above. Without a package index: do without RAFT, which only make raft needs\n",
		"hollow": "raft-sdk: the wheels hold no librmm/lib64/librmm.so\n",
	} {
		w, target, installing := newRAFTWorld(t)
		w.expect(t, 1, installing+words, "PIP="+pip)
		if names := beside(t, target); len(names) != 0 {
			t.Errorf("left over: %v", names)
		}
	}

	w, _, _ := newRAFTWorld(t)
	w.sdk = []string{"raft-26.12"}
	w.expect(t, 2, "install.sh: got raft-26.12; expected raft or nothing\n")
}

func TestRequirementsArePinnedAndHashedAndNameNoServer(t *testing.T) {
	line := regexp.MustCompile(`^[a-z][a-z0-9-]+==[0-9.]+ --hash=sha256:[0-9a-f]{64}$`)
	all, err := os.ReadFile("install.sh")
	if err != nil {
		t.Fatal(err)
	}
	for file, wheels := range map[string]int{"requirements.txt": 9, "raft-requirements.txt": 5} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, l := range strings.Split(strings.TrimSpace(string(text)), "\n") {
			if strings.HasPrefix(l, "#") {
				continue
			}
			n++
			if !line.MatchString(l) {
				t.Errorf("%s: got %s; expected %v", file, l, line)
			}
		}
		if n != wheels {
			t.Errorf("%s: got %d wheels; expected %d", file, n, wheels)
		}
		all = append(all, text...)
	}
	if bytes.Contains(all, []byte("://")) {
		t.Error("a server is named")
	}
}
