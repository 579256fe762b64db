package cudaenv

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestSplitUndoesJoin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOf(rapid.StringMatching(`[a-z'" \t]{0,6}`)).Draw(t, "words")
		joined, err := join(words)
		if err != nil {
			if !slices.ContainsFunc(words, func(w string) bool { return strings.Contains(w, "'") && strings.Contains(w, `"`) }) {
				t.Fatalf("%q: %v", words, err)
			}
			return
		}
		got, err := split(joined)
		if err != nil || !slices.Equal(got, words) && len(got)+len(words) > 0 {
			t.Fatalf("%q became %q, and that %q %v", words, joined, got, err)
		}
	})
}

// The go command is the reference: it must hand the C compiler the words that
// went in. -n has it print its commands instead.
func TestTheGoCommandReadsWhatJoinWrites(t *testing.T) {
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("no gcc")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":  "module example.com/quotes\n",
		"main.go": "package main\n\nimport \"C\"\n\nfunc main() {}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	flags, err := join([]string{"-DPLAIN=1", "-DWITH= space", "-DONE='", `-DTWO="`})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-n", "-a", ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "CGO_ENABLED=1", "CGO_CFLAGS="+flags)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	// It prints each word as Go quotes a string, if it has to.
	for _, want := range []string{" -DPLAIN=1 ", ` "-DWITH= space" `, " -DONE=' ", ` "-DTWO=\"" `} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %s in what go build -n prints", want)
		}
	}
}

func TestQuotesWithoutAnEndAreRefused(t *testing.T) {
	_, err := split(`gcc '-DX`)
	if err == nil || err.Error() != "cudaenv.Find: CC: got '-DX; expected a closing quote" {
		t.Errorf("got %v", err)
	}
	_, err = join([]string{`-I/a'b"c`})
	if err == nil || err.Error() != `cudaenv.Find: path: got -I/a'b"c; expected one without both kinds of quotes, for the go command takes none` {
		t.Errorf("got %v", err)
	}
}
