package sharedlib

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"unicode/utf8"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/hostmem"
)

// Library is a library that was loaded.
type Library struct {
	handle uintptr
	Path   string // as the loader was given it
}

// Open loads a library. A name with a separator is its path; another one is looked for
// in the folders that the environment variable lists, then where the loader looks. who
// is whose errors they are. An empty name is an ErrArgument.
func Open(who, variable, name string) (Library, error) {
	if name == "" { // which the loader takes for the program itself
		return Library{}, weir.Argf(who, "the library's name is empty; expected a file's name or its path")
	}
	path := name
	if !strings.ContainsRune(name, '/') && !strings.ContainsRune(name, filepath.Separator) {
		for _, folder := range filepath.SplitList(os.Getenv(variable)) {
			// Join would make a name of "./name". Whatever is wrong here, the next may have it.
			in := filepath.Clean(folder) + string(filepath.Separator) + name
			if _, err := os.Stat(in); err == nil {
				path = in
				break
			}
		}
	} else if !exists(path) {
		return Library{}, cannotLoad(who, "library %s: there is no such file; build it or correct the path", path)
	}
	if has, needs := extent(path); has < needs {
		return Library{}, cannotLoad(who, "library %s: it is cut off: it has %d bytes, and maps %d; build or copy it again", path, has, needs)
	}
	handle, err := dlopen(path)
	if err == nil {
		return Library{handle, path}, nil
	}
	if path == name && !exists(path) {
		return Library{}, cannotLoad(who, "library %s: it is neither in the folders of %s=%q nor where the system looks; build it or name its folder", name, variable, os.Getenv(variable))
	}
	if why := diagnose(path); why != nil {
		err = why
	}
	return Library{}, cannotLoad(who, "library %s: %v", path, err)
}

// Symbol is the address of a function or variable.
func (l Library) Symbol(who, name string) (uintptr, error) {
	if at := dlsym(l.handle, name); at != 0 {
		return at, nil
	}
	return 0, cannotLoad(who, "library %s: it has no entry point %s; expected one built for this interface", l.Path, name)
}

// mostText is how far a string is read.
const mostText = 4096

// Text is the C string at an address: at most 4096 bytes of it, of which those that are
// no UTF-8 become U+FFFD.
func Text(at uintptr) string {
	if at == 0 {
		return ""
	}
	n := int64(0)
	for n < mostText && *(*byte)(hostmem.Pointer(at + uintptr(n))) != 0 {
		n++
	}
	return Valid(hostmem.Bytes(at, n))
}

// Valid is text with U+FFFD in the place of each byte that is no UTF-8.
func Valid(text []byte) string {
	if utf8.Valid(text) {
		return string(text)
	}
	return string([]rune(string(text)))
}

// Failure is the error of who's call that answered a status other than 0, of the message
// and the kind, as a weir.Kind, that the library gives. Other kinds are generic. Running
// out of memory is an ErrOutOfMemory.
func Failure(who string, status int32, message string, kind int32) *weir.Error {
	e := &weir.Error{Op: who, Message: message}
	if message == "" {
		e.Message = fmt.Sprintf("the library answered status %d and no message", status)
	}
	switch k := weir.Kind(kind); k {
	case weir.KindOutOfMemory:
		e.Kind, e.Err = k, weir.ErrOutOfMemory
	case weir.KindCUDA, weir.KindLogic:
		e.Kind = k
	}
	return e
}

// NativePath is the environment variable that lists folders of libraries of the native
// interface, for Open.
const NativePath = "WEIR_NATIVE_LIBRARY_PATH"

func cannotLoad(who, format string, args ...any) error {
	return &weir.Error{Op: who, Message: fmt.Sprintf(format, args...), Err: weir.ErrNotSupported}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// machines are the processors that libraries are for, by the names of Go.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// diagnose says why the loader cannot take a file, where its own message is vague; nil
// if that has to do.
func diagnose(path string) error {
	if goruntime.GOOS != "linux" {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	head := make([]byte, 20)
	if _, err := io.ReadFull(f, head); err != nil || !bytes.HasPrefix(head, []byte(elf.ELFMAG)) {
		return errors.New("it is no shared library")
	}
	is := elf.Machine(uint16(head[18]) | uint16(head[19])<<8)
	if elf.Data(head[elf.EI_DATA]) == elf.ELFDATA2MSB {
		is = elf.Machine(uint16(head[19]) | uint16(head[18])<<8)
	}
	if want := machines[goruntime.GOARCH]; is != want {
		return fmt.Errorf("it is built for %s, and this process runs on %s; build it for that", machine(is), machine(want))
	}
	return nil
}

// extent is how many bytes a library has, and how many its segments map: the loader
// does not look, and the process ends where it touches one that is not there. Both are
// 0 of what is none of this system's libraries.
func extent(path string) (has, needs uint64) {
	f, err := os.Open(path)
	if err != nil {
		return 0, 0
	}
	defer f.Close()
	var h elf.Header64
	info, err := f.Stat()
	if err != nil || binary.Read(f, binary.LittleEndian, &h) != nil || !bytes.HasPrefix(h.Ident[:], []byte(elf.ELFMAG)) || elf.Machine(h.Machine) != machines[goruntime.GOARCH] {
		return 0, 0
	}
	segments := make([]elf.Prog64, h.Phnum)
	size := uint64(binary.Size(segments))
	if needs = h.Phoff + size; needs > uint64(info.Size()) {
		return uint64(info.Size()), needs
	}
	if binary.Read(io.NewSectionReader(f, int64(h.Phoff), int64(size)), binary.LittleEndian, segments) != nil {
		return 0, 0
	}
	for _, p := range segments {
		if elf.ProgType(p.Type) == elf.PT_LOAD {
			needs = max(needs, p.Off+p.Filesz)
		}
	}
	return uint64(info.Size()), needs
}

func machine(m elf.Machine) string {
	return strings.ToLower(strings.TrimPrefix(m.String(), "EM_"))
}
