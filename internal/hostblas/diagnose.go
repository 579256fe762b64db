//go:build ((linux && !android) || darwin) && (amd64 || arm64)

package hostblas

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// diagnose says why the system's loader refused a library. The loader's own
// message is vague where it matters: a library for another processor is "No
// such file", as is one that needs a library that is not there.
func diagnose(name, message string) string {
	if !strings.ContainsRune(name, filepath.Separator) {
		// A message about another name tells of a library that this one needs.
		missing := strings.HasPrefix(message, name+": cannot open shared object file")
		if runtime.GOOS == "darwin" {
			missing = strings.Contains(message, "no such file") && !strings.Contains(message, "incompatible")
		}
		if missing {
			return notFound
		}
		return message
	}
	info, err := os.Stat(name)
	switch {
	case os.IsNotExist(err):
		return "no such file"
	case err != nil:
		return err.Error()
	case info.IsDir():
		return "a folder, not a library"
	}
	if runtime.GOOS == "linux" {
		if reason := foreignELF(name); reason != "" {
			return reason
		}
	}
	return strings.TrimPrefix(message, name+": ")
}

// machines are the processors that libraries are loaded on.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// foreignELF says why a file cannot be a library of this process, or "".
func foreignELF(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	// The identification, the file's type, and its machine.
	var head [elf.EI_NIDENT + 4]byte
	if _, err := io.ReadFull(f, head[:]); err != nil || string(head[:4]) != elf.ELFMAG {
		return "not a shared library"
	}
	class, data := elf.Class(head[elf.EI_CLASS]), elf.Data(head[elf.EI_DATA])
	if class != elf.ELFCLASS64 || data != elf.ELFDATA2LSB {
		return fmt.Sprintf("a library of another kind of processor (%v, %v); expected %v, %v", class, data, elf.ELFCLASS64, elf.ELFDATA2LSB)
	}
	machine := elf.Machine(binary.LittleEndian.Uint16(head[elf.EI_NIDENT+2:]))
	if want := machines[runtime.GOARCH]; machine != want {
		return fmt.Sprintf("a library for another processor (%v); expected %v", machine, want)
	}
	return ""
}

// realFile is path with its links followed, as far as they can be.
func realFile(path string) string {
	if p, err := filepath.EvalSymlinks(path); err == nil {
		return p
	}
	return path
}
