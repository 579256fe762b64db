package cudaenv

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/weirgo/weir"
)

// Toolkit is an installation of NVIDIA's headers and libraries.
type Toolkit struct {
	Root    string
	Version int // as CUDA_VERSION has it: 13000 is 13.0
}

// Include is where its headers are.
func (t Toolkit) Include() string { return filepath.Join(t.Root, "include") }

// Lib is where its libraries are.
func (t Toolkit) Lib() string {
	if lib64 := filepath.Join(t.Root, "lib64"); isDir(lib64) {
		return lib64
	}
	return filepath.Join(t.Root, "lib")
}

func (t Toolkit) String() string {
	return fmt.Sprintf("CUDA %d.%d in %s", t.Version/1000, t.Version%1000/10, t.Root)
}

const oldest = 12000

// usual is where the installers put the toolkit.
const usual = "/usr/local/cuda"

// wheels is where the toolkit is in a folder that make cuda-sdk filled.
const wheels = "nvidia/cu13"

// findToolkit takes the first usable toolkit, in doc.go's order; installed is
// the usual place.
func findToolkit(getenv func(string) string, installed string) (Toolkit, error) {
	var tried []string
	for _, place := range []struct{ name, root string }{
		{"CUDA_HOME", getenv("CUDA_HOME")},
		{"WEIR_CUDA_SDK", below(getenv("WEIR_CUDA_SDK"), wheels)},
		{"the usual place", installed},
		{"the cache", below(cache(getenv), "cuda-13.0", wheels)},
	} {
		if place.root == "" {
			tried = append(tried, place.name+" is not set")
			continue
		}
		t, why := inspect(place.root)
		if why == "" {
			return t, nil
		}
		tried = append(tried, fmt.Sprintf("%s (%s) %s", place.name, place.root, why))
	}
	return Toolkit{}, notSupported("no headers of CUDA 12 or later were found: %s; run make cuda-sdk, or install NVIDIA's toolkit and set CUDA_HOME",
		strings.Join(tried, "; "))
}

var version = regexp.MustCompile(`(?m)^#define CUDA_VERSION (\d+)`)

// inspect says why root is of no use, or "".
func inspect(root string) (t Toolkit, why string) {
	t.Root, why = root, ""
	text, err := os.ReadFile(filepath.Join(root, "include", "cuda.h"))
	if err != nil {
		return t, "has no include/cuda.h"
	}
	found := version.FindSubmatch(text)
	if found == nil {
		return t, "has a cuda.h without CUDA_VERSION"
	}
	if t.Version, err = strconv.Atoi(string(found[1])); err != nil || t.Version < oldest {
		return t, fmt.Sprintf("has CUDA_VERSION %s; expected at least %d", found[1], oldest)
	}
	for _, header := range []string{"cublas_v2.h", "cusolverDn.h"} {
		if _, err := os.Stat(filepath.Join(root, "include", header)); err != nil {
			return t, "has no include/" + header
		}
	}
	return t, ""
}

// cache is Weir's folder below the user's cache, or "" without a home.
func cache(getenv func(string) string) string {
	if dir := getenv("XDG_CACHE_HOME"); dir != "" {
		return filepath.Join(dir, "weir")
	}
	return below(getenv("HOME"), ".cache", "weir")
}

// below joins paths, and is "" if the first is.
func below(root string, names ...string) string {
	if root == "" {
		return ""
	}
	return filepath.Join(append([]string{root}, names...)...)
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func notSupported(format string, args ...any) *weir.Error {
	return &weir.Error{Op: "cudaenv.Find", Err: weir.ErrNotSupported, Message: fmt.Sprintf(format, args...)}
}
