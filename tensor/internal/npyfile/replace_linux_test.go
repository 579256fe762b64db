package npyfile

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weirgo/weir/dtype"
)

func TestPermissionsAreKeptOrFollowTheUmask(t *testing.T) {
	defer unix.Umask(unix.Umask(0o027))
	path := filepath.Join(t.TempDir(), "x.npy")
	modes := []os.FileMode{0o640, 0o600, 0o666, 0o640} // a new file's, then what it was given
	for i, next := range modes[1:] {
		want := modes[i]
		if err := writeSix(t.Context(), path); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode() != want {
			t.Errorf("%v, %v; expected mode %v", info.Mode(), err, want)
		}
		chmod(t, path, next)
	}
}

// unprivileged runs f without the rights of the superuser, to whom permissions
// mean nothing. The file system asks for those of the calling thread, so that no
// process is needed.
func unprivileged(t *testing.T, f func()) {
	t.Helper()
	if os.Getuid() != 0 {
		f()
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const nobody = 65534
	old, err := unix.SetfsuidRetUid(nobody)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Setfsuid(old)
	f()
}

// openFolders lets others pass the private folders that a test's folder lies in.
func openFolders(t *testing.T, folder string) {
	t.Helper()
	for folder != filepath.Clean(os.TempDir()) && folder != "/" {
		chmod(t, folder, 0o755)
		folder = filepath.Dir(folder)
	}
}

func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func TestWriteFileRefusesWhatMayNotBeWritten(t *testing.T) {
	path := save(t, []byte("old"))
	folder := filepath.Dir(path)
	fresh := filepath.Join(folder, "y.npy")
	openFolders(t, folder)
	chmod(t, folder, 0o555)
	unprivileged(t, func() {
		err := writeSix(t.Context(), fresh)
		wantError(t, err, fresh+": cannot make a temporary file in "+folder+"; expected a writable folder: permission denied")
		if !errors.Is(err, os.ErrPermission) {
			t.Errorf("%v does not match os.ErrPermission", err)
		}
	})
	// In a folder that may be changed, a renaming would replace this file.
	chmod(t, folder, 0o777)
	chmod(t, path, 0o444)
	unprivileged(t, func() {
		wantError(t, writeSix(t.Context(), path), path+": cannot be written; expected a writable file or none: permission denied")
		if err := writeSix(t.Context(), fresh); err != nil {
			t.Error(err)
		}
	})
	wantContent(t, path, []byte("old"), "x.npy", "y.npy")
}

func TestOpenRefusesWhatMayNotBeRead(t *testing.T) {
	path := save(t, nil)
	openFolders(t, filepath.Dir(path))
	chmod(t, path, 0)
	unprivileged(t, func() {
		_, err := Open(path)
		wantError(t, err, path+": cannot be opened; expected a .npy file: permission denied")
	})
}

func TestPipesAndSocketsAreRefusedWithoutWaiting(t *testing.T) {
	folder := t.TempDir()
	pipe, socket := filepath.Join(folder, "pipe"), filepath.Join(folder, "socket")
	if err := unix.Mkfifo(pipe, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mknod(socket, unix.S_IFSOCK|0o666, 0); err != nil {
		t.Fatal(err)
	}
	for path, kind := range map[string]string{pipe: "named pipe", socket: "socket"} {
		_, err := Open(path)
		wantError(t, err, path+": is a "+kind+"; expected a .npy file")
		wantError(t, writeSix(t.Context(), path), path+": is a "+kind+"; expected a place for a .npy file")
	}
}

func TestWriteSaysThatTheDiskIsFull(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	err = Write(t.Context(), full, "x.npy", dtype.Float32, []int64{6}, false, make([]byte, 24))
	wantError(t, err, "x.npy: written only 0 of 152 bytes: no space left on device")
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("%v does not match ENOSPC", err)
	}
}

// TestAFullDiskLeavesTheOldFileAndNoOther runs itself in a process whose files
// may not grow beyond three chunks.
func TestAFullDiskLeavesTheOldFileAndNoOther(t *testing.T) {
	const limit = 3 * chunk
	if folder := os.Getenv("NPYFILE_LIMITED"); folder != "" {
		signal.Ignore(syscall.SIGXFSZ) // so that the write fails instead
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: limit, Max: limit}); err != nil {
			t.Fatal(err)
		}
		data := make([]byte, limit)
		path := filepath.Join(folder, "x.npy")
		err := WriteFile(t.Context(), path, dtype.Float64, []int64{limit / 8}, false, data)
		wantError(t, err, fmt.Sprintf("%s: written only %d of %d bytes: file too large", path, limit, limit+128))
		path = filepath.Join(folder, "x.npz")
		err = WriteNPZ(t.Context(), path, []Named{{Name: "a", DType: dtype.Float64, Shape: []int64{limit / 8}, Data: data}})
		if !errors.Is(err, syscall.EFBIG) {
			t.Errorf("%v does not match EFBIG", err)
		}
		return
	}
	path := save(t, []byte("old"))
	folder := filepath.Dir(path)
	if err := os.WriteFile(filepath.Join(folder, "x.npz"), []byte("old too"), 0o666); err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	c.Env = append(os.Environ(), "NPYFILE_LIMITED="+folder)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	wantContent(t, path, []byte("old"), "x.npy", "x.npz")
	wantContent(t, filepath.Join(folder, "x.npz"), []byte("old too"), "x.npy", "x.npz")
}
