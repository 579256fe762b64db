package sharedlib

import (
	"debug/elf"
	"errors"
	"os"
	"path/filepath"
	goruntime "runtime"
	"testing"
	"unsafe"

	"go.uber.org/goleak"

	"github.com/weirgo/weir"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const variable = "WEIR_SHAREDLIB_TEST_PATH"

// libc loads the system's C library.
func libc(t *testing.T) Library {
	t.Helper()
	if goruntime.GOOS != "linux" {
		t.Skip("the C library has another name here")
	}
	l, err := Open("test", variable, "libc.so.6")
	if err != nil {
		t.Skip(err)
	}
	return l
}

func TestAFunctionOfALibraryIsCalled(t *testing.T) {
	l := libc(t)
	at, err := l.Symbol("test", "strlen")
	if err != nil {
		t.Fatal(err)
	}
	text := []byte("four\x00")
	if n := Call(at, uintptr(unsafe.Pointer(&text[0]))); n != 4 {
		t.Errorf("strlen of %q is %d", text, n)
	}
}

func TestALibraryThatCannotBeLoadedIsNamedWithTheReason(t *testing.T) {
	l := libc(t)
	folder := t.TempDir()
	t.Setenv(variable, folder)
	file := func(name string, content []byte) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	foreign := append([]byte(elf.ELFMAG), byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), 1)
	foreign = append(foreign, make([]byte, 64)...)
	foreign[18] = byte(elf.EM_PPC64)
	text, other := file("libtext.so", []byte("no library")), file("libother.so", foreign)
	_, lacks := l.Symbol("test", "weir_no_such_function")
	open := func(name string) error {
		_, err := Open("test", variable, name)
		return err
	}
	for _, c := range []struct {
		err  error
		want string
	}{
		{open("libweir-absent.so"), "test: library libweir-absent.so: it is neither in the folders of " + variable + `="` + folder + `" nor where the system looks; build it or name its folder`},
		{open(folder + "/absent.so"), "test: library " + folder + "/absent.so: there is no such file; build it or correct the path"},
		{open("libtext.so"), "test: library " + text + ": it is no shared library"},
		{open(other), "test: library " + other + ": it is built for ppc64, and this process runs on " + machine(machines[goruntime.GOARCH]) + "; build it for that"},
		{lacks, "test: library libc.so.6: it has no entry point weir_no_such_function; expected one built for this interface"},
	} {
		if !errors.Is(c.err, weir.ErrNotSupported) || c.err.Error() != c.want {
			t.Errorf("got %v\nexpected %s", c.err, c.want)
		}
	}
}

func TestALibraryIsLookedForPastWhatIsNoFolder(t *testing.T) {
	libc(t)
	folder := t.TempDir()
	text := filepath.Join(folder, "libtext.so")
	if err := os.WriteFile(text, []byte("no library"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv(variable, text+string(filepath.ListSeparator)+folder)
	_, err := Open("test", variable, "libtext.so")
	if want := "test: library " + text + ": it is no shared library"; err == nil || err.Error() != want {
		t.Errorf("got %v\nexpected %s", err, want)
	}
	t.Chdir(folder)
	t.Setenv(variable, ".")
	_, err = Open("test", variable, "libtext.so")
	if want := "test: library ./libtext.so: it is no shared library"; err == nil || err.Error() != want {
		t.Errorf("got %v\nexpected %s", err, want)
	}
	t.Setenv(variable, text)
	if _, err := Open("test", variable, "libc.so.6"); err != nil {
		t.Errorf("past the folders: %v", err)
	}
}

func TestAnEmptyNameIsNoLibrary(t *testing.T) {
	for _, folders := range []string{"", t.TempDir()} {
		t.Setenv(variable, folders)
		_, err := Open("test", variable, "")
		if want := "test: the library's name is empty; expected a file's name or its path"; !errors.Is(err, weir.ErrArgument) || err.Error() != want {
			t.Errorf("got %v\nexpected %s", err, want)
		}
	}
}

func TestATextIsReadToItsEndAndMadeUTF8(t *testing.T) {
	long := make([]byte, mostText+10)
	for i := range long {
		long[i] = 'x'
	}
	for _, c := range []struct {
		at   []byte
		want string
	}{
		{[]byte("plain\x00more"), "plain"},
		{[]byte("a\xffb\x00"), "a\uFFFDb"},
		{long, string(long[:mostText])},
	} {
		if got := Text(uintptr(unsafe.Pointer(&c.at[0]))); got != c.want {
			t.Errorf("got %q; expected %q", got, c.want)
		}
	}
	if got := Text(0); got != "" {
		t.Errorf("no address is %q", got)
	}
}
