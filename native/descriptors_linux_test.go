package native_test

import (
	"errors"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/native"
)

func TestAJobForWhichThereIsNoDescriptorIsRefusedAndTheNextIsNot(t *testing.T) {
	if !onHost() {
		t.Skip("the GPU's driver may need descriptors too")
	}
	ctx := start(t)
	lib, s := openTest(t, ctx), newSession(t, ctx)
	into := job(t, lib, "rt_deposit_job", native.Handle, native.Int32, native.Int64, native.IntoDeposit)
	d := must(s.NewDeposit())
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	none := before
	none.Cur = 3
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &none); err != nil {
		t.Skip(err)
	}
	err := into.Run(ctx, s, "deposit", 1, 3, d)
	if restored := unix.Setrlimit(unix.RLIMIT_NOFILE, &before); restored != nil {
		t.Fatal(restored)
	}
	says(t, err, weir.KindGeneric, "deposit on "+deviceName+": the job cannot be submitted: eventfd: too many open files")
	if !errors.Is(err, syscall.EMFILE) {
		t.Errorf("%v is not EMFILE", err)
	}
	if arrays, err := d.Arrays(ctx); len(arrays) != 0 || err != nil {
		t.Errorf("the deposit has %v, %v; expected it closed and empty", arrays, err)
	}
	if err := into.Run(ctx, s, "deposit", 1, 3, must(s.NewDeposit())); err != nil {
		t.Error(err)
	}
}
