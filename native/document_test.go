package native_test

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/native"
	"github.com/weirgo/weir/tensor"
)

// The examples of the source document, in its order, each with what it prints.

// world is what the document's examples have made before.
type world struct {
	*canary
	t      *testing.T
	ctx    context.Context
	s      *native.Session
	X      *tensor.Array // 300×2, three blobs
	truth  *tensor.Array
	fitted *tensor.Array // 3×2
}

func newWorld(t *testing.T) *world {
	ctx := start(t)
	w := &world{t: t, ctx: ctx, canary: openCanary(t, ctx), s: newSession(t, ctx)}
	w.X, w.truth, w.fitted = w.matrix(300, 2), w.ints(300), w.matrix(3, 2)
	w.ok(w.s.Do(ctx, func(sc *native.Scope) error {
		return w.own.Check("blobs", func() int32 { return w.blobs(sc.Handle(), sc.View(0), sc.View(1), 3, 0.5, 1, -10, 10, 7) })
	}, native.Out(w.X), native.Out(w.truth)))
	return w
}

func (w *world) ok(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) matrix(rows, cols int) *tensor.Array {
	return must(tensor.Zeros(w.ctx, tensor.Float32, rows, cols))
}

func (w *world) ints(n int) *tensor.Array { return must(tensor.Zeros(w.ctx, tensor.Int32, n)) }

// fitTo is the document's call of kc-fit in a scope.
func (w *world) fitTo(checker *native.Checker, x, centroids *tensor.Array) (inertia float64, rounds int32, err error) {
	err = w.s.Do(w.ctx, func(sc *native.Scope) error {
		return checker.Check("kmeans-fit", func() int32 {
			return w.fit(sc.Handle(), sc.View(0), nil, sc.View(1), 0, 300, 0.0001, 1, 0, 42, &inertia, &rounds)
		})
	}, native.In(x), native.InOut(centroids))
	return inertia, rounds, err
}

func (w *world) integers() *tensor.Array {
	return must(tensor.From(w.ctx, []int32{1, 2, 3, 4, 5, 6}, 3, 2))
}

func TestAFailedCheckedCallAnswersTheLibrarysMessageAndKind(t *testing.T) {
	w := newWorld(t)
	_, _, err := w.fitTo(&w.Checker, w.integers(), w.matrix(2, 2))
	says(t, err, weir.KindLogic, "kmeans-fit: X: expected float32 or float64, got int32")
	e, ok := errors.AsType[*weir.Error](err)
	if !ok || e.Op != "kmeans-fit" || e.Message != "X: expected float32 or float64, got int32" {
		t.Errorf("got %+v; expected who and the message apart", e)
	}
}

func TestAPackageRaisesItsOwnTypeOfError(t *testing.T) {
	w := newWorld(t)
	inertia, rounds, err := w.fitTo(&w.own.Checker, w.X, w.fitted)
	if err != nil || inertia <= 0 || rounds < 1 {
		t.Errorf("inertia %g after %d rounds, %v; expected some of both", inertia, rounds, err)
	}
	_, _, err = w.fitTo(&w.own.Checker, w.X, w.matrix(3, 5))
	says(t, err, weir.KindLogic, "kmeans-fit: centroids: expected 2 columns, got 5")
	if _, ok := errors.AsType[*canaryError](err); !ok {
		t.Errorf("%T is not the package's own error", err)
	}
}

func TestAFailedJobAnswersItsOwnMessage(t *testing.T) {
	w := newWorld(t)
	var inertia float64
	var rounds int32
	err := w.fitJob.Run(w.ctx, w.s, "kmeans-fit", w.integers(), nil, w.matrix(2, 2), 0, 300, 0.0001, 1, 0.0, 42, &inertia, &rounds)
	says(t, err, weir.KindLogic, "kmeans-fit: X: expected float32 or float64, got int32")
}

func TestAViewArgumentThatIsNoArrayIsRefused(t *testing.T) {
	w := newWorld(t)
	var inertia float64
	var rounds int32
	for given, text := range map[any]string{"not-an-array": `"not-an-array"`, 7: "7", 2.5: "2.5", w: "a *native_test.world", true: "true"} {
		err := w.fitJob.Run(w.ctx, w.s, "kmeans-fit", given, nil, w.fitted, 0, 300, 0.0001, 1, 0.0, 42, &inertia, &rounds)
		says(t, err, weir.KindLogic, "kmeans-fit: expected a device array or nil for a view, given "+text)
		if errors.Is(err, weir.ErrArgument) {
			t.Errorf("%v is an argument error; expected one of kind logic alone", err)
		}
	}
	err := w.fitJob.Run(w.ctx, w.s, "kmeans-fit", &tensor.Array{}, nil, w.fitted, 0, 300, 0.0001, 1, 0.0, 42, &inertia, &rounds)
	says(t, err, weir.KindLogic, "kmeans-fit: expected a device array or nil for a view, given the zero Array")
}

// TestOtherGoroutinesRunWhileAJobDoes counts the ticks of 5 ms, on one processor of
// Go's. The fit is made longer until it takes 200 ms, whatever machine this is.
func TestOtherGoroutinesRunWhileAJobDoes(t *testing.T) {
	w := newWorld(t)
	defer goruntime.GOMAXPROCS(goruntime.GOMAXPROCS(1))
	rows := 20_000
	if !onHost() {
		rows = 1_000_000
	}
	big, labels := w.matrix(rows, 32), w.ints(rows)
	w.ok(w.blobsJob.Run(w.ctx, w.s, "blobs", big, labels, 64, 1.0, 1, -10.0, 10.0, 1))
	for rounds := 1; ; rounds *= 2 {
		var inertia float64
		var n int32
		ticks := 0
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			ticker := time.NewTicker(5 * time.Millisecond)
			defer ticker.Stop()
			for {
				select {
				case <-ticker.C:
					ticks++
				case <-stop:
					return
				}
			}
		}()
		began := time.Now()
		err := w.fitJob.Run(w.ctx, w.s, "kmeans-fit", big, nil, w.matrix(64, 32), 1, 100, 1e-12, rounds, 0.0, 1, &inertia, &n)
		took := time.Since(began)
		close(stop)
		<-stopped
		w.ok(err)
		if took < 200*time.Millisecond && rounds < 1<<12 {
			continue
		}
		if ticks < 10 {
			t.Errorf("%d ticks during a job of %v; expected 10 or more", ticks, took)
		}
		return
	}
}

func TestADeclarationOfTheWrongSizeIsRefused(t *testing.T) {
	w := newWorld(t)
	short := must(w.Job("kmeans-canary", "kc_fit_job", native.Handle, native.ViewIn, native.ViewIn, native.ViewInOut, native.Int32))
	err := short.Run(w.ctx, w.s, "kmeans-fit", w.X, nil, w.fitted, 0)
	says(t, err, weir.KindLogic, "kmeans-fit: the argument block is 472 bytes; the job expects 520")
}

func TestADepositParameterTakesOutputsSizedByTheCall(t *testing.T) {
	w := newWorld(t)
	_, _, err := w.fitTo(&w.Checker, w.X, w.fitted)
	w.ok(err)
	labels := w.ints(300)
	var inertia float64
	w.ok(w.predictJob.Run(w.ctx, w.s, "kmeans-predict", w.fitted, w.X, nil, 1, labels, &inertia))
	if inertia <= 0 {
		t.Errorf("inertia %g; expected some", inertia)
	}
	found := must(w.s.NewDeposit())
	w.ok(w.membersJob.Run(w.ctx, w.s, "cluster-members", w.X, labels, 0, found))
	arrays := must(found.Arrays(w.ctx))
	if len(arrays) != 2 {
		t.Fatalf("%d arrays; expected 2", len(arrays))
	}
	indices, rows := must(tensor.Data[int64](w.ctx, arrays[0])), must(tensor.Data[float32](w.ctx, arrays[1]))
	all, of := must(tensor.Data[float32](w.ctx, w.X)), must(tensor.Data[int32](w.ctx, labels))
	var want []int64
	var wantRows []float32
	for i, label := range of {
		if label == 0 {
			want = append(want, int64(i))
			wantRows = append(wantRows, all[2*i], all[2*i+1])
		}
	}
	if len(want) == 0 || !slices.Equal(indices, want) || !slices.Equal(rows, wantRows) {
		t.Errorf("members %v with rows %v; expected %v with %v", indices, rows, want, wantRows)
	}
	err = w.membersJob.Run(w.ctx, w.s, "cluster-members", w.X, labels, 0, found)
	says(t, err, weir.KindLogic, "cluster-members: the deposit is closed")
	for given, text := range map[any]string{"not-a-deposit": `"not-a-deposit"`, nil: "nil"} {
		err = w.membersJob.Run(w.ctx, w.s, "cluster-members", w.X, labels, 0, given)
		says(t, err, weir.KindLogic, "cluster-members: expected a deposit for a deposit parameter, given "+text)
	}
}

// checkABI calls the canary's own check with a tag.
func (w *world) checkABI(tag *native.ABITag) error {
	var check func(*native.ABITag) int32
	w.ok(w.Func("kmeans-canary", "kc_check_abi", &check))
	return w.Check("kmeans-canary", func() int32 { return check(tag) })
}

func TestAForgedTagIsRefusedByItsFirstDifference(t *testing.T) {
	w := newWorld(t)
	tag := must(native.ABI(w.s.Device()))
	w.ok(w.checkABI(tag))
	if onHost() && *tag != (native.ABITag{Version: 1, RAFT: [3]int32{26, 10, 0}, HandleSize: 32}) {
		t.Errorf("the host flavour's tag is %+v", *tag)
	}
	next := func(x [3]int32, i int) [3]int32 { x[i]++; return x }
	version := func(x [3]int32) string { return fmt.Sprintf("%d.%02d.%02d", x[0], x[1], x[2]) }
	texts := map[string]func(*native.ABITag){
		"RAFT: built against " + version(tag.RAFT) + ", but libraftrkt has " + version(next(tag.RAFT, 1)):             func(f *native.ABITag) { f.RAFT = next(f.RAFT, 1) },
		fmt.Sprintf("raft::handle_t size: built against %d, but libraftrkt has %d", tag.HandleSize, tag.HandleSize+1): func(f *native.ABITag) { f.HandleSize++ },
	}
	if onHost() {
		texts["ABI version: built against 1, but libraftrkt has 2"] = func(f *native.ABITag) { f.Version++; f.HandleSize++ }
		texts["RMM: built against none, but libraftrkt has 1.00.00"] = func(f *native.ABITag) { f.RMM[0]++; f.CCCL[0]++ }
		texts["CCCL: built against none, but libraftrkt has 0.0.1"] = func(f *native.ABITag) { f.CCCL[2]++; f.CUDARuntime = 12090 }
		texts["CUDA runtime: built against none, but libraftrkt has 12.9.0"] = func(f *native.ABITag) { f.CUDARuntime = 12090; f.ResourceTypes++ }
		texts["resource types: built against 0, but libraftrkt has 1"] = func(f *native.ABITag) { f.ResourceTypes++; f.HandleSize++ }
	}
	for text, change := range texts {
		forged := *tag
		change(&forged)
		says(t, w.checkABI(&forged), weir.KindLogic, "kmeans-canary: "+text+"; build both against the same rapids package set")
	}
	says(t, w.checkABI(nil), weir.KindLogic, "kmeans-canary: ABI tag: built against present, but libraftrkt has none")
}

func TestEachSessionHasAHandleAndAStreamOfItsOwn(t *testing.T) {
	w := newWorld(t)
	other := newSession(t, w.ctx)
	handle, others := must(w.s.Handle()), must(other.Handle())
	if handle == nil || others == nil || handle == others {
		t.Errorf("handles %p and %p; expected two", handle, others)
	}
	Y, classes := w.matrix(6, 2), w.ints(6)
	w.ok(other.Do(w.ctx, func(sc *native.Scope) error {
		if sc.Handle() != others {
			t.Errorf("the scope has the handle %p; expected its session's, %p", sc.Handle(), others)
		}
		return w.Check("blobs", func() int32 { return w.blobs(sc.Handle(), sc.View(0), sc.View(1), 2, 0.1, 0, -1, 1, 3) })
	}, native.Out(Y), native.Out(classes)))
	got := must(tensor.Data[int32](w.ctx, classes))
	slices.Sort(got)
	if got = slices.Compact(got); !slices.Equal(got, []int32{0, 1}) {
		t.Errorf("classes %v; expected 0 and 1", got)
	}
}

func TestAReleasedSessionRefusesItsHandle(t *testing.T) {
	w := newWorld(t)
	finished := must(native.NewSession(w.ctx))
	w.ok(finished.Close())
	_, err := finished.Handle()
	says(t, err, weir.KindLogic, "Session.Handle: the device resources on device 0 were released")
	err = finished.Do(w.ctx, func(*native.Scope) error { t.Error("called"); return nil })
	says(t, err, weir.KindLogic, "Session.Do: the device resources on device 0 were released")
	_, err = finished.NewDeposit()
	says(t, err, weir.KindLogic, "Session.NewDeposit: the device resources on device 0 were released")
	var inertia float64
	err = w.predictJob.Run(w.ctx, finished, "kmeans-predict", w.fitted, w.X, nil, 1, w.truth, &inertia)
	says(t, err, weir.KindLogic, "kmeans-predict: the device resources on device 0 were released")
	if !errors.Is(err, weir.ErrClosed) {
		t.Errorf("%v is not ErrClosed", err)
	}
	w.ok(finished.Close())
}

func TestAViewShowsElementTypeRankShapeAndStridesWhereCReadsThem(t *testing.T) {
	w := newWorld(t)
	F := must(tensor.Copy(w.ctx, w.X.T())).T() // column-major
	w.ok(w.s.Do(w.ctx, func(sc *native.Scope) error {
		v := unsafe.Pointer(sc.View(0))
		at32 := func(offset int) int32 { return *(*int32)(unsafe.Add(v, offset)) }
		at64 := func(offset int) int64 { return *(*int64)(unsafe.Add(v, offset)) }
		if at32(8) != 0 || at32(20) != 2 || at64(24) != 300 || at64(32) != 2 || at64(88) != 1 || at64(96) != 300 || at64(40) != 0 || at64(104) != 0 {
			t.Errorf("dtype %d, rank %d, shape (%d %d), strides (%d %d); expected 0 2 (300 2) (1 300), and zeros past these",
				at32(8), at32(20), at64(24), at64(32), at64(88), at64(96))
		}
		if got := sc.View(0).String(); got != "float32[300×2] strides (1, 300)" {
			t.Errorf("the view is %s", got)
		}
		return nil
	}, native.In(F)))
	_, _, err := w.fitTo(&w.Checker, F, w.matrix(3, 2))
	says(t, err, weir.KindLogic, "kmeans-fit: X: expected row-major, got col-major 300x2")
}

func TestAClearedViewIsRefusedByTheLibrary(t *testing.T) {
	w := newWorld(t)
	var stale *native.View
	w.ok(w.s.Do(w.ctx, func(sc *native.Scope) error { stale = sc.View(0); return nil }, native.In(w.X)))
	var inertia float64
	err := w.s.Do(w.ctx, func(sc *native.Scope) error {
		return w.Check("kmeans-predict", func() int32 {
			return w.predict(sc.Handle(), sc.View(0), stale, nil, 1, sc.View(1), &inertia)
		})
	}, native.In(w.fitted), native.Out(w.truth))
	says(t, err, weir.KindLogic, "kmeans-predict: X: not a view bound to device memory")
}

// fillIn has a deposit filled in a scope of s.
func (w *world) fillIn(s *native.Session, d *native.Deposit) error {
	return s.Do(w.ctx, func(sc *native.Scope) error {
		return w.Check("cluster-members", func() int32 { return w.members(sc.Handle(), sc.View(0), sc.View(1), 0, sc.Record(2)) })
	}, native.In(w.X), native.In(w.truth), native.Into(d))
}

func TestADepositIsConvertedOnceItWasFilledAndFilledOnce(t *testing.T) {
	w := newWorld(t)
	pending := must(w.s.NewDeposit())
	err := w.s.Do(w.ctx, func(*native.Scope) error {
		_, err := pending.Arrays(w.ctx)
		return err
	}, native.Into(pending))
	says(t, err, weir.KindLogic, "Deposit.Arrays: the deposit is still open")
	if arrays, err := pending.Arrays(w.ctx); len(arrays) != 0 || err != nil {
		t.Errorf("got %v, %v; expected nothing", arrays, err)
	}
	members := must(w.s.NewDeposit())
	w.ok(w.fillIn(w.s, members))
	says(t, w.fillIn(w.s, members), weir.KindLogic, "Session.Do: the deposit is closed")
	if n := len(must(members.Arrays(w.ctx))); n != 2 {
		t.Errorf("%d arrays; expected 2", n)
	}
	elsewhere := must(newSession(t, w.ctx).NewDeposit())
	says(t, w.fillIn(w.s, elsewhere), weir.KindLogic, "cluster-members: out: on resources other than the call's")
	if arrays, err := elsewhere.Arrays(w.ctx); len(arrays) != 0 || err != nil {
		t.Errorf("got %v, %v; expected nothing", arrays, err)
	}
}

func TestSessionsOfOneDeviceAreClosedWithTheRuntimeButReported(t *testing.T) {
	ctx, rt := begin(t)
	s := must(native.NewSession(ctx))
	err := rt.Close()
	if !errors.Is(err, weir.ErrLeak) {
		t.Errorf("got %v; expected the session to be reported", err)
	}
	says(t, err, weir.KindLogic, "runtime.Close on "+deviceName+": native session on "+deviceName+" is still held; WEIR_DEBUG=leaks tells where it was made")
	if _, err := s.Handle(); !errors.Is(err, weir.ErrClosed) {
		t.Errorf("the handle is answered with %v; expected ErrClosed", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := native.NewSession(ctx); !errors.Is(err, weir.ErrNotStarted) {
		t.Errorf("a session without a runtime: %v", err)
	}
}
