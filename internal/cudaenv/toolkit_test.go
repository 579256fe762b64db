package cudaenv

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/weirgo/weir"
)

// toolkit makes the headers of a toolkit below root.
func toolkit(t *testing.T, root, cudaH string, others ...string) string {
	t.Helper()
	include := filepath.Join(root, "include")
	if err := os.MkdirAll(include, 0o755); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"cuda.h": cudaH}
	for _, name := range others {
		files[name] = ""
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(include, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

const thirteen = "#ifndef X\n#define CUDA_VERSION 13010\n#endif\n"

func whole(t *testing.T, root string) string {
	return toolkit(t, root, thirteen, "cublas_v2.h", "cusolverDn.h")
}

func env(pairs ...string) func(string) string { return lookup(pairs) }

func TestNamedToolkitsComeBeforeFoundOnes(t *testing.T) {
	nowhere := filepath.Join(t.TempDir(), "nowhere")
	home := whole(t, t.TempDir())
	sdk := t.TempDir()
	inSDK := whole(t, filepath.Join(sdk, "nvidia/cu13"))
	installed := whole(t, t.TempDir())
	xdg := t.TempDir()
	inXDG := whole(t, filepath.Join(xdg, "weir/cuda-13.0/nvidia/cu13"))
	user := t.TempDir()
	inCache := whole(t, filepath.Join(user, ".cache/weir/cuda-13.0/nvidia/cu13"))

	for _, c := range []struct {
		what, root, installed string
		env                   []string
	}{
		{"all", home, installed, []string{"CUDA_HOME=" + home, "WEIR_CUDA_SDK=" + sdk, "XDG_CACHE_HOME=" + xdg}},
		{"CUDA_HOME without a toolkit", inSDK, installed, []string{"CUDA_HOME=" + nowhere, "WEIR_CUDA_SDK=" + sdk, "XDG_CACHE_HOME=" + xdg}},
		{"nothing named", installed, installed, []string{"XDG_CACHE_HOME=" + xdg, "HOME=" + user}},
		{"nothing installed", inXDG, nowhere, []string{"XDG_CACHE_HOME=" + xdg, "HOME=" + user}},
		{"the cache in HOME", inCache, nowhere, []string{"HOME=" + user}},
	} {
		got, err := findToolkit(env(c.env...), c.installed)
		if err != nil || got.Root != c.root || got.Version != 13010 {
			t.Errorf("%s: got %v %v; expected %s", c.what, got, err, c.root)
		}
	}
}

func TestWithoutAToolkitTheErrorSaysWhatEachPlaceLacks(t *testing.T) {
	dir := t.TempDir()
	old := toolkit(t, filepath.Join(dir, "old"), "#define CUDA_VERSION 11080\n", "cublas_v2.h", "cusolverDn.h")
	odd := toolkit(t, filepath.Join(dir, "sdk/nvidia/cu13"), "#define VERSION 13000\n")
	bare := toolkit(t, filepath.Join(dir, "bare"), thirteen, "cublas_v2.h")
	cached := toolkit(t, filepath.Join(dir, "cache/weir/cuda-13.0/nvidia/cu13"), thirteen, "cusolverDn.h")

	_, err := findToolkit(env("CUDA_HOME="+old, "WEIR_CUDA_SDK="+filepath.Join(dir, "sdk"), "XDG_CACHE_HOME="+filepath.Join(dir, "cache")), bare)
	want := "cudaenv.Find: no headers of CUDA 12 or later were found: " +
		"CUDA_HOME (" + old + ") has CUDA_VERSION 11080; expected at least 12000; " +
		"WEIR_CUDA_SDK (" + odd + ") has a cuda.h without CUDA_VERSION; " +
		"the usual place (" + bare + ") has no include/cusolverDn.h; " +
		"the cache (" + cached + ") has no include/cublas_v2.h; " +
		"run make cuda-sdk, or install NVIDIA's toolkit and set CUDA_HOME"
	if !errors.Is(err, weir.ErrNotSupported) || err.Error() != want {
		t.Errorf("got %v\nexpected %s", err, want)
	}

	_, err = findToolkit(env(), "/nonexistent/cuda")
	want = "cudaenv.Find: no headers of CUDA 12 or later were found: CUDA_HOME is not set; WEIR_CUDA_SDK is not set; " +
		"the usual place (/nonexistent/cuda) has no include/cuda.h; the cache is not set; " +
		"run make cuda-sdk, or install NVIDIA's toolkit and set CUDA_HOME"
	if err == nil || err.Error() != want {
		t.Errorf("got %v\nexpected %s", err, want)
	}
}

func TestAToolkitSaysItsVersionAndWhereItsLibrariesAre(t *testing.T) {
	root := t.TempDir()
	tool := Toolkit{Root: root, Version: 12060}
	if got, want := tool.String(), "CUDA 12.6 in "+root; got != want {
		t.Errorf("got %s; expected %s", got, want)
	}
	if got := tool.Lib(); got != filepath.Join(root, "lib") {
		t.Errorf("got %s", got)
	}
	if err := os.Mkdir(filepath.Join(root, "lib64"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got := tool.Lib(); got != filepath.Join(root, "lib64") {
		t.Errorf("got %s", got)
	}
}
