package hostblas

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// The search for OpenBLAS, in this order; the first one that works is taken:
//
//  1. the folder that WEIR_BLAS_DIR names, since it was named on purpose: any
//     lib*openblas*.so* in it, in its lib folder, or where the Python wheels
//     scipy-openblas32 and scipy-openblas64 put their library, so that
//     `pip install --target DIR scipy-openblas32` and naming DIR is enough;
//  2. the usual names, through the system's loader;
//  3. the names that vary, libopenblasp* and libscipy_openblas*, in the
//     folders of LD_LIBRARY_PATH and the system's.
//
// Python is never run.

// notFound is the failure of a name that the system's loader does not know.
const notFound = "not found"

// attempt is a library that was tried and did not work.
type attempt struct {
	name string
	err  error
}

// places are where OpenBLAS is searched.
type places struct {
	dir     string   // WEIR_BLAS_DIR
	names   []string // that the system's loader may know
	folders []string // with names that vary
}

func usualPlaces() places {
	return places{os.Getenv("WEIR_BLAS_DIR"), usualNames(), systemFolders()}
}

// choose is Open without the budget.
func choose(setting string, where places) *Library {
	switch strings.ToLower(strings.TrimSpace(setting)) {
	case "", "auto":
		e, name, tried := search(where)
		if e == nil {
			return useGonum("gonum computes because no OpenBLAS was found: " + describe(tried))
		}
		return useExternal(e, name, "OpenBLAS was found as "+name+after(tried))
	case "openblas":
		e, name, tried := search(where)
		if e == nil {
			return useGonum("gonum computes although OpenBLAS is asked for, because none was found: " + describe(tried))
		}
		return useExternal(e, name, "OpenBLAS is asked for, and was found as "+name+after(tried))
	case "gonum":
		return useGonum("gonum is asked for")
	}
	e, err := load(setting, true)
	if err != nil {
		return useGonum(fmt.Sprintf("gonum computes although the library %q is asked for: %v; the other settings are auto, openblas and gonum", setting, err))
	}
	return useExternal(e, setting, fmt.Sprintf("the library %q is asked for", setting))
}

// search tries all places, and answers what it found and what failed before.
func search(where places) (*external, string, []attempt) {
	var tried []attempt
	try := func(names []string) (*external, string) {
		for _, name := range names {
			e, err := load(name, false)
			if err == nil {
				return e, name
			}
			tried = append(tried, attempt{name, err})
		}
		return nil, ""
	}
	if where.dir != "" {
		names := matches(wheelFolders(where.dir), "lib*openblas*")
		if e, name := try(names); e != nil {
			return e, name, tried
		}
		if len(names) == 0 {
			tried = append(tried, attempt{"WEIR_BLAS_DIR=" + where.dir, folderWithout(where.dir)})
		}
	}
	if e, name := try(where.names); e != nil {
		return e, name, tried
	}
	e, name := try(matches(where.folders, "libopenblasp*", "libscipy_openblas*"))
	return e, name, tried
}

// wheelFolders are the places of a library in a folder that a user names.
func wheelFolders(dir string) []string {
	return []string{
		dir,
		filepath.Join(dir, "lib"),
		filepath.Join(dir, "scipy_openblas32", "lib"),
		filepath.Join(dir, "scipy_openblas64", "lib"),
	}
}

func usualNames() []string {
	if runtime.GOOS == "darwin" {
		// Homebrew does not link OpenBLAS into its common folder.
		return []string{"libopenblas.dylib", "/opt/homebrew/opt/openblas/lib/libopenblas.dylib", "/usr/local/opt/openblas/lib/libopenblas.dylib"}
	}
	return []string{"libopenblas.so.0", "libopenblas.so"}
}

// systemFolders are where the system's loader looks, as far as that is known
// without reading its cache.
func systemFolders() []string {
	if runtime.GOOS != "linux" {
		return nil
	}
	folders := filepath.SplitList(os.Getenv("LD_LIBRARY_PATH"))
	if triplet := map[string]string{"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}[runtime.GOARCH]; triplet != "" {
		folders = append(folders, "/usr/local/lib/"+triplet, "/usr/lib/"+triplet)
	}
	return append(folders, "/usr/local/lib64", "/usr/local/lib", "/usr/lib64", "/usr/lib")
}

// matches are the shared libraries in folders that a pattern without the
// suffix describes, in order.
func matches(folders []string, patterns ...string) []string {
	suffix := ".so*"
	if runtime.GOOS == "darwin" {
		suffix = ".dylib"
	}
	var all []string
	for _, folder := range folders {
		if folder == "" {
			continue
		}
		for _, p := range patterns {
			// The folder's name is not a pattern, so it is not part of the glob.
			entries, err := os.ReadDir(folder)
			if err != nil {
				continue
			}
			for _, e := range entries {
				path := filepath.Join(folder, e.Name())
				if ok, _ := filepath.Match(p+suffix, e.Name()); ok && !slices.Contains(all, path) {
					all = append(all, path)
				}
			}
		}
	}
	return all
}

func folderWithout(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return fmt.Errorf("no such folder")
	case !info.IsDir():
		return fmt.Errorf("not a folder; WEIR_BLAS takes the path of a library")
	}
	return fmt.Errorf("no lib*openblas* in it, nor in its folders lib, scipy_openblas32/lib and scipy_openblas64/lib")
}

// describe lists failed attempts.
func describe(tried []attempt) string {
	parts := make([]string, len(tried))
	for i, a := range tried {
		parts[i] = fmt.Sprintf("%s: %v", a.name, a.err)
	}
	return strings.Join(parts, "; ")
}

// after tells what failed before a success. That a usual name is simply not
// there is nothing to tell.
func after(tried []attempt) string {
	tried = slices.DeleteFunc(slices.Clone(tried), func(a attempt) bool { return a.err.Error() == notFound })
	if len(tried) == 0 {
		return ""
	}
	return ", after " + describe(tried)
}
