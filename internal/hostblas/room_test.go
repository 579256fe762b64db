//go:build linux && (amd64 || arm64)

package hostblas

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestWithoutRoomForBuffersNoLibraryIsLoaded: OpenBLAS would try for ever. The
// search is that of a process of its own, which may map little more than it has.
func TestWithoutRoomForBuffersNoLibraryIsLoaded(t *testing.T) {
	const child = "WEIR_TEST_LITTLE_ROOM"
	if os.Getenv(child) != "" {
		var pages uint64
		text, err := os.ReadFile("/proc/self/statm")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Sscan(string(text), &pages); err != nil {
			t.Fatal(err)
		}
		most := pages*uint64(os.Getpagesize()) + 200<<20
		if err := unix.Setrlimit(unix.RLIMIT_AS, &unix.Rlimit{Cur: most, Max: most}); err != nil {
			t.Fatal(err)
		}
		expectGonum(t, Open(""), "ulimit -v")
		return
	}
	if Open("").Name() != "OpenBLAS" {
		t.Skip("no OpenBLAS")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	c.Env = append(os.Environ(), child+"=1")
	out, err := c.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("%v: %s", err, out)
	}
}
