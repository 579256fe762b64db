//go:build cuda

package raft

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/cuda"
	"github.com/weirgo/weir/internal/driver/cuda/cudatest"
	"github.com/weirgo/weir/internal/sharedlib"
	"github.com/weirgo/weir/provider/raft/rafttest"
	"github.com/weirgo/weir/runtime"
)

// rig is a GPU with RAFT: a simulated one with a double of RAFT.
type rig struct {
	t  *testing.T
	rt *runtime.Runtime
	r  *runtime.Resources
	m  *buffer.Memory
}

func newRig(t *testing.T, streams int) *rig {
	t.Helper()
	if cudatest.Simulated() {
		t.Setenv(rafttest.Variable, rafttest.Build(t))
	} else if cuda.New().Count() == 0 {
		t.Skip("there is no GPU: ", cuda.New().Unavailable())
	}
	rt, err := runtime.StartFamilies([]driver.Family{cuda.New()}, runtime.Options{
		Devices: []string{"cuda:0"}, ResourceOptions: runtime.ResourceOptions{Streams: streams}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rt.Close(); err != nil {
			t.Error(err)
		}
		if n := live(t); n != 0 {
			t.Errorf("%d handles are left", n)
		}
	})
	x := &rig{t: t, rt: rt}
	if x.r, err = runtime.Here(context.Background()); err == nil {
		x.m, err = buffer.Of(x.r)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := load("test"); errors.Is(err, weir.ErrNotSupported) {
		t.Skip(err)
	}
	return x
}

// live is how many handles the double has; 0 of RAFT itself.
func live(t *testing.T) int {
	t.Helper()
	if !cudatest.Simulated() || loaded.libraries == nil {
		return 0
	}
	if liveAt == 0 { // the double that was loaded first stays
		lib, err := sharedlib.Open("test", sharedlib.NativePath, "libraftrkt.so")
		if err == nil {
			liveAt, err = lib.Symbol("test", "stub_live")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return int(sharedlib.Call(liveAt))
}

var liveAt uintptr

func bytesOf(data []float64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(data))), 8*len(data))
}

func (x *rig) acquire() *Lease {
	x.t.Helper()
	l, err := AcquireOn(context.Background(), x.r)
	if err != nil {
		x.t.Fatal(err)
	}
	return &l
}

// sum has one row summed, and answers what that gave.
func (x *rig) sum(l *Lease, row ...float64) (float64, error) {
	n := int64(len(row))
	from, err1 := x.m.New(8 * n)
	to, err2 := x.m.New(8)
	if err := errors.Join(err1, err2); err != nil {
		return 0, err
	}
	acc := buffer.Begin(l.Stream())
	a, out := acc.Write(from), acc.Write(to)
	s, err := l.Stream().Submit()
	if err != nil {
		return 0, err
	}
	var result [1]float64
	err = errors.Join(acc.Err(), s.CopyIn(a, bytesOf(row)), Reduce(l, &Reducing{DType: dtype.Float64, To: Sum, Rows: 1, N: n, A: a, Out: out}),
		s.CopyOut(bytesOf(result[:]), out), acc.End(), from.Free(), to.Free())
	return result[0], err
}

func TestHandlesAreMadeAtTheFirstUseAndGoWithTheDevice(t *testing.T) {
	for streams, handles := range map[int]int{1: 1, 2: 2, 5: 2} {
		t.Run(fmt.Sprint(streams, " streams"), func(t *testing.T) {
			x := newRig(t, streams)
			for i := range 5 {
				l := x.acquire()
				if got, err := x.sum(l, 1, 2, float64(i)); err != nil || got != 3+float64(i) {
					t.Errorf("the sum is %v, %v; expected %d", got, err, 3+i)
				}
				if err := l.Release(); err != nil {
					t.Error(err)
				}
			}
			e, err := Of(x.r)
			if err != nil || e.Size() != handles {
				t.Errorf("there are %d handles, %v; expected %d", e.Size(), err, handles)
			}
			if n := live(t); cudatest.Simulated() && n != handles {
				t.Errorf("%d handles were made; expected %d", n, handles)
			}
			if _, err := Configure(x.r, handles+1); !errors.Is(err, weir.ErrArgument) {
				t.Errorf("another count later answers %v; expected ErrArgument", err)
			}
		})
	}
}

func TestAHandleThatAnsweredAnErrorIsReplaced(t *testing.T) {
	x := newRig(t, 1)
	p, err := x.m.New(8 * 64)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		spoil func(l *Lease, at driver.Ptr) error
		want  string // of the double; RAFT's library says more of one
	}{
		"k of 0": {func(l *Lease, at driver.Ptr) error {
			return SelectK(l, &Selection{DType: dtype.Float64, Rows: 1, N: 4, K: 0, A: at, Values: at + 256, Indices: at + 384})
		}, "raft.SelectK on cuda:0: values: expected 1 to 4 columns, got 0"},
		"an element type": {func(l *Lease, at driver.Ptr) error {
			return Reduce(l, &Reducing{DType: dtype.Complex64, To: Sum, Rows: 1, N: 4, A: at, Out: at + 256})
		}, "raft.Reduce on cuda:0: a: expected float32 or float64, got dtype "},
		"too many dimensions": {func(l *Lease, at driver.Ptr) error {
			return RandomizedSVD(l, &Decomposition{DType: dtype.Float64, M: 4, N: 3, K: 1, Oversampling: 2, A: at, U: at + 128, S: at + 256, V: at + 384})
		}, "raft.RandomizedSVD on cuda:0: oversampling: expected 0 to 1, got 2"},
	} {
		l := x.acquire()
		before, _ := l.Value()
		acc := buffer.Begin(l.Stream())
		at := acc.Write(p)
		err := c.spoil(l, at)
		var e *weir.Error
		if !errors.As(err, &e) || e.Kind != weir.KindLogic || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s answers %v; expected %s", name, err, c.want)
		}
		if err := errors.Join(acc.End(), l.Release()); err != nil {
			t.Error(err)
		}
		l = x.acquire()
		if after, err := l.Value(); err != nil || after == before {
			t.Errorf("%s: the handle was given on, %v", name, err)
		}
		if got, err := x.sum(l, 4, 5); err != nil || got != 9 {
			t.Errorf("%s: the new handle's sum is %v, %v; expected 9", name, got, err)
		}
		if err := l.Release(); err != nil {
			t.Error(err)
		}
	}
	l := x.acquire()
	copied := *l
	if err := errors.Join(l.Release(), p.Free()); err != nil {
		t.Error(err)
	}
	for name, l := range map[string]*Lease{"a released lease": l, "a copy of one": &copied} {
		if _, err := x.sum(l, 1); !errors.Is(err, weir.ErrStale) {
			t.Errorf("%s answers %v; expected ErrStale", name, err)
		}
	}
}

// TestADecompositionWritesItsResultsAndNothingBeside, A included.
func TestADecompositionWritesItsResultsAndNothingBeside(t *testing.T) {
	x := newRig(t, 1)
	const m, n, k, gap = 40, 30, 4, 64
	places := []struct {
		name  string
		count int
	}{{"A", m * n}, {"U", m * k}, {"S", k}, {"V", n * k}}
	total := gap
	var at [4]driver.Ptr
	for i, p := range places {
		at[i] = driver.Ptr(8 * total)
		total += p.count + gap
	}
	data := make([]float64, total)
	for i := range data {
		data[i] = -12345
	}
	for i := range m * n {
		data[gap+i] = float64(i*i%17) - 8
	}
	given := slices.Clone(data[gap : gap+m*n])
	b, err := x.m.New(8 * int64(total))
	if err != nil {
		t.Fatal(err)
	}
	l := x.acquire()
	acc := buffer.Begin(l.Stream())
	base := acc.Write(b)
	s, err := l.Stream().Submit()
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(acc.Err(), s.CopyIn(base, bytesOf(data)), RandomizedSVD(l, &Decomposition{DType: dtype.Float64, M: m, N: n, K: k, Oversampling: 8, Iterations: 2,
		A: base + at[0], U: base + at[1], S: base + at[2], V: base + at[3]}), s.CopyOut(bytesOf(data), base), acc.End(), l.Release(), b.Free())
	if err != nil {
		t.Fatal(err)
	}
	place := 0
	for _, p := range append(places, struct {
		name  string
		count int
	}{"the end", 0}) {
		for i, v := range data[place : place+gap] {
			if v != -12345 {
				t.Fatalf("%v was written %d before %s", v, gap-i, p.name)
			}
		}
		for i, v := range data[place+gap : place+gap+p.count] {
			if p.name == "A" && v != given[i] {
				t.Fatalf("element %d of A was %v and is %v", i, given[i], v)
			}
			if v == -12345 {
				t.Fatalf("element %d of %s was not written", i, p.name)
			}
		}
		place += gap + p.count
	}
}

func TestManyGoroutinesShareTheHandles(t *testing.T) {
	x := newRig(t, 4)
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := range 10 {
				l, err := AcquireOn(context.Background(), x.r)
				if err != nil {
					t.Error(err)
					return
				}
				if got, err := x.sum(&l, float64(g), float64(i)); err != nil || got != float64(g+i) {
					t.Errorf("the sum is %v, %v; expected %d", got, err, g+i)
				}
				if err := l.Release(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

// missingVariable has a child process look for libraries that are not there.
const missingVariable = "WEIR_RAFT_MISSING_TEST"

// TestMissing is run by TestLibrariesThatCannotBeUsedAreNamed.
func TestMissing(t *testing.T) {
	if os.Getenv(missingVariable) == "" {
		t.Skip("run by TestLibrariesThatCannotBeUsedAreNamed")
	}
	rt, err := runtime.Start(runtime.Options{Devices: []string{"cuda:0"}})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the next one looks again
		_, err := Acquire(context.Background())
		fmt.Printf("> %t %v\n", errors.Is(err, weir.ErrNotSupported), err)
	}
	fmt.Println("> closed", rt.Close())
}

// TestAThreadThatNeverUsedTheDeviceSubmits: a goroutine may be on a thread on which no
// context is current.
func TestAThreadThatNeverUsedTheDeviceSubmits(t *testing.T) {
	x := newRig(t, 1)
	l := x.acquire()
	const threads = 32 // more than there can be idle ones
	row := []float64{1, 2, 4}
	from, err1 := x.m.New(24)
	to, err2 := x.m.New(8 * threads)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	acc := buffer.Begin(l.Stream())
	a, out := acc.Write(from), acc.Write(to)
	s, err := l.Stream().Submit()
	if err == nil {
		err = s.CopyIn(a, bytesOf(row))
	}
	if err != nil {
		t.Fatal(err)
	}
	var turn sync.Mutex // a lease is one goroutine's at a time
	var all sync.WaitGroup
	all.Add(threads)
	errs := make([]error, threads)
	for i := range threads {
		go func() {
			goruntime.LockOSThread() // and the thread ends with the goroutine
			turn.Lock()
			errs[i] = Reduce(l, &Reducing{DType: dtype.Float64, To: Sum, Rows: 1, N: 3, A: a, Out: out + driver.Ptr(8*i)})
			turn.Unlock()
			all.Done()
			all.Wait()
		}()
	}
	all.Wait()
	got := make([]float64, threads)
	if err := errors.Join(errors.Join(errs...), acc.Err(), s.CopyOut(bytesOf(got), out), acc.End(), from.Free(), to.Free()); err != nil {
		t.Fatal(err)
	}
	for i, sum := range got {
		if sum != 7 {
			t.Errorf("the sum of thread %d is %v; expected 7", i, sum)
		}
	}
	if err := l.Release(); err != nil {
		t.Error(err)
	}
}

func TestLibrariesThatCannotBeUsedAreNamed(t *testing.T) {
	if !cudatest.Simulated() {
		t.Skip("the driver is no simulator")
	}
	built := rafttest.Build(t)
	empty, text, half := t.TempDir(), t.TempDir(), t.TempDir()
	if err := errors.Join(
		os.WriteFile(filepath.Join(text, "libraftrkt.so"), []byte("no library"), 0o644),
		os.Symlink(filepath.Join(built, "libraftrkt.so"), filepath.Join(half, "libraftrkt.so")),
	); err != nil {
		t.Fatal(err)
	}
	const absent = `raft.Acquire: RAFT, which make raft builds: library %s: it is neither in the folders of WEIR_NATIVE_LIBRARY_PATH="%s" nor where the system looks; build it or name its folder`
	for folder, want := range map[string]string{
		empty: fmt.Sprintf(absent, "libraftrkt.so", empty),
		text:  "raft.Acquire: RAFT, which make raft builds: library " + text + "/libraftrkt.so: it is no shared library",
		half:  fmt.Sprintf(absent, "libweirraft.so", half),
	} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMissing$")
		cmd.Env = append(os.Environ(), missingVariable+"=1", sharedlib.NativePath+"="+folder, "LD_LIBRARY_PATH=")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		var lines []string
		for line := range strings.Lines(string(out)) {
			if said, ok := strings.CutPrefix(line, "> "); ok {
				lines = append(lines, strings.TrimSpace(said))
			}
		}
		if expected := []string{"true " + want, "true " + want, "closed <nil>"}; !slices.Equal(lines, expected) {
			t.Errorf("got %q\nexpected %q", lines, expected)
		}
	}
}
