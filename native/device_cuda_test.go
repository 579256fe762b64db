//go:build cuda

package native_test

import (
	"os"
	"testing"

	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/cuda/cudatest"
	"github.com/weirgo/weir/native"
	"github.com/weirgo/weir/stream"
	"github.com/weirgo/weir/tensor"
)

func init() {
	if os.Getenv("WEIR_TEST_CUDA") == "1" {
		deviceName = "cuda:0"
	}
}

// TestWhatTheSessionsStreamWasGivenIsWaitedForByLaterUsers: the scope's end waits for
// nothing, and publishes the stream's tail where there is anything to wait for.
func TestWhatTheSessionsStreamWasGivenIsWaitedForByLaterUsers(t *testing.T) {
	if onHost() {
		t.Skip("native code of the host device leaves nothing queued")
	}
	ctx := start(t)
	s := newSession(t, ctx)
	written, read := must(tensor.Full(ctx, 5, tensor.Float32, 8)), must(tensor.Zeros(ctx, tensor.Float32, 8))
	before := written.Buffer().Writer()
	do := func(body func(*native.Scope) error) {
		t.Helper()
		if err := s.Do(ctx, body, native.Out(written), native.In(read)); err != nil {
			t.Fatal(err)
		}
	}
	do(func(*native.Scope) error { return nil })
	if after := written.Buffer().Writer(); after != before {
		t.Errorf("a scope that left nothing queued published %v over %v", after, before)
	}
	release := func() {}
	defer func() { release() }()
	do(func(sc *native.Scope) error {
		queue, err := native.StreamOf(s)
		if err == nil {
			release, err = cudatest.Stall(queue)
		}
		if err == nil {
			err = queue.Launch(&driver.Kernel{Op: driver.KernelFill, Out: sc.View(0).Vector(), Alpha: 3})
		}
		if err == nil { // from what is read: 0
			err = queue.Launch(&driver.Kernel{Op: driver.KernelCopy, Out: sc.View(0).Vector(), A: sc.View(1).Vector()})
		}
		return err
	})
	queued := written.Buffer().Writer()
	if done, err := queued.Done(); done || err != nil || queued == (stream.Completion{}) {
		t.Fatalf("with work queued the writer is %v, done %v, %v; expected one that is not done", queued, done, err)
	}
	// Other streams' work on either array comes later.
	after := must(tensor.Copy(ctx, written))
	if err := tensor.CopyInto(ctx, read, must(tensor.Full(ctx, 7, tensor.Float32, 8))); err != nil {
		t.Fatal(err)
	}
	for name, a := range map[string]*tensor.Array{"reads what was written": after, "overwrites what was read": read} {
		if done, err := a.Buffer().Writer().Done(); done || err != nil {
			t.Errorf("what %s is done %v, %v, before the session's work", name, done, err)
		}
	}
	release()
	for i, x := range must(tensor.Data[float32](ctx, after)) {
		if x != 0 {
			t.Errorf("element %d is %v; expected 0, as the session's stream read and wrote it before others did", i, x)
		}
	}
}
