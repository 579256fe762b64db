package native_test

import (
	"errors"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/native"
)

// thrown are the exceptions of the test library, with what they become.
var thrown = []struct {
	which int32
	kind  weir.Kind
	text  string
}{
	{1, weir.KindOutOfMemory, "std::bad_alloc"},
	{2, weir.KindLogic, "a logic_error of std"},
	{3, weir.KindLogic, "a logic_error of raftrkt"},
	{4, weir.KindGeneric, "a runtime_error"},
	{5, weir.KindCUDA, "a cuda_error"},
	{6, weir.KindOutOfMemory, "a cuda_error of memory"},
	{7, weir.KindGeneric, "unknown exception"},
	{8, weir.KindGeneric, "outer"},
	{9, weir.KindGeneric, "bad \ufffd byte"},
	{10, weir.KindGeneric, strings.Repeat("€", 1365)}, // 4095 bytes: cut where a character ends
	{11, weir.KindGeneric, "the library answered status 1 and no message"},
}

func TestEveryKindOfExceptionIsAnErrorOfItsKind(t *testing.T) {
	ctx := start(t)
	lib, s := openTest(t, ctx), newSession(t, ctx)
	var throw func(int32) int32
	if err := lib.Func("rt", "rt_throw", &throw); err != nil {
		t.Fatal(err)
	}
	asJob := job(t, lib, "rt_throw_job", native.Int32)
	for _, c := range thrown {
		for _, err := range []error{
			lib.Check("throw", func() int32 { return throw(c.which) }),
			asJob.Run(ctx, s, "throw", c.which),
		} {
			says(t, err, c.kind, "throw: "+c.text)
			if errors.Is(err, weir.ErrOutOfMemory) != (c.kind == weir.KindOutOfMemory) {
				t.Errorf("%v of kind %v: ErrOutOfMemory is %t", err, c.kind, c.kind != weir.KindOutOfMemory)
			}
		}
	}
	if err := errors.Join(lib.Check("throw", func() int32 { return throw(0) }), asJob.Run(ctx, s, "throw", 0)); err != nil {
		t.Errorf("a call that succeeds after others failed: %v", err)
	}
}

// TestEveryKindOfExceptionOfRAFTIsAnErrorOfItsKind: the messages name the types.
func TestEveryKindOfExceptionOfRAFTIsAnErrorOfItsKind(t *testing.T) {
	if onHost() {
		t.Skip("the host flavour has no RAFT")
	}
	ctx := start(t)
	lib := openTest(t, ctx)
	var throw func(int32) int32
	if err := lib.Func("rt", "rt_throw", &throw); err != nil {
		t.Fatal(err)
	}
	for which, want := range map[int32]weir.Kind{
		20: weir.KindOutOfMemory, 21: weir.KindOutOfMemory, 22: weir.KindCUDA, 23: weir.KindLogic, 24: weir.KindLogic,
		25: weir.KindCUDA, 26: weir.KindOutOfMemory, 27: weir.KindCUDA, 28: weir.KindOutOfMemory, 29: weir.KindCUDA,
		30: weir.KindOutOfMemory, 31: weir.KindCUDA, 32: weir.KindOutOfMemory, 33: weir.KindGeneric,
	} {
		err := lib.Check("throw", func() int32 { return throw(which) })
		if e, ok := errors.AsType[*weir.Error](err); !ok || e.Kind != want || e.Message == "" {
			t.Errorf("exception %d: %+v; expected the kind %v and a message", which, e, want)
		}
	}
}

func TestAnyStatusButZeroAndAnyKindAreErrors(t *testing.T) {
	ctx := start(t)
	lib, s := openTest(t, ctx), newSession(t, ctx)
	var fail func(status, kind int32) int32
	if err := lib.Func("rt", "rt_fail", &fail); err != nil {
		t.Fatal(err)
	}
	asJob := job(t, lib, "rt_fail_job", native.Int32, native.Int32)
	for _, status := range []int32{1, 2, -7, 1 << 30} {
		for kind, want := range map[int32]weir.Kind{0: weir.KindGeneric, 1: weir.KindOutOfMemory, 2: weir.KindCUDA, 3: weir.KindLogic, 4: weir.KindGeneric, -1: weir.KindGeneric, 1 << 30: weir.KindGeneric} {
			says(t, lib.Check("fail", func() int32 { return fail(status, kind) }), want, "fail: failed as told")
			says(t, asJob.Run(ctx, s, "fail", status, kind), want, "fail: failed as told")
		}
	}
}

// TestTheLastErrorIsReadOnTheThreadOfTheCall: while others of other kinds fail, which
// would show if a goroutine moved between the call and the reads.
func TestTheLastErrorIsReadOnTheThreadOfTheCall(t *testing.T) {
	ctx := start(t)
	lib := openTest(t, ctx)
	var throw func(int32) int32
	if err := lib.Func("rt", "rt_throw", &throw); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 8 {
		c := thrown[i%6]
		wg.Go(func() {
			for range 500 {
				err := lib.Check("throw", func() int32 {
					status := throw(c.which)
					goruntime.Gosched()
					return status
				})
				if err == nil || err.Error() != "throw: "+c.text {
					t.Errorf("got %v; expected %s", err, c.text)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestACheckedCallThatSucceedsAllocatesNothingAndReadsNothing(t *testing.T) {
	ctx := start(t)
	lib := openTest(t, ctx)
	var sum int32
	if n := testing.AllocsPerRun(100, func() {
		if err := lib.Check("nothing", func() int32 { sum++; return 0 }); err != nil {
			t.Error(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations; expected none", n)
	}
}

func TestACheckedCallThatPanicsUnlocksItsThread(t *testing.T) {
	lib := openTest(t, start(t))
	for range 100 {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic was lost")
				}
			}()
			_ = lib.Check("panics", func() int32 { panic("as told") })
		}()
	}
}
