package tensor

import (
	"context"
	"testing"

	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/host"
	"github.com/weirgo/weir/runtime"
)

// TestAPanicWhileRecordingIsOfItsOperation: an operation that panicked is no node, and
// those after it are recorded.
func TestAPanicWhileRecordingIsOfItsOperation(t *testing.T) {
	rt, err := runtime.StartFamilies([]driver.Family{host.New(host.Options{})}, runtime.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := rt.Close(); err != nil {
			t.Error(err)
		}
	}()
	ctx := context.Background()
	here, err := runtime.Here(ctx)
	if err != nil {
		t.Fatal(err)
	}
	m, err := buffer.Of(here)
	if err != nil {
		t.Fatal(err)
	}
	var arrays Arrays
	r := NewRecording(m, &arrays)
	under := r.Under(runtime.On(ctx, here.Device()))
	a, err := From(ctx, []float64{1, 2, 3, 4}, 2, 2)
	if err != nil {
		t.Fatal(err)
	}
	panics := func(do func()) {
		defer func() {
			if recover() == nil {
				t.Error("it did not panic")
			}
		}()
		do()
	}
	panics(func() { _ = onStream(under, a, func(*operation) error { panic("a kernel's own") }) })
	panics(func() {
		var x multiplication
		if err := x.begin(under, written(a, a, a), a); err != nil {
			t.Fatal(err)
		}
		x.acc.Write(a.Buffer())
		panic("a product's own")
	})
	if _, err := Add(under, a, a); err != nil {
		t.Error(err)
	}
	if _, err := MatMul(under, a, a); err != nil {
		t.Error(err)
	}
	if err := r.End(); err != nil {
		t.Error(err)
	}
	if n := len(r.Nodes()); n != 2 {
		t.Errorf("recorded %d operations; want 2", n)
	}
	for _, o := range r.Outside() {
		if o.Written {
			t.Error("what panicked is said to have written its array")
		}
	}
	if err := arrays.Free(); err != nil {
		t.Error(err)
	}
	if err := a.Free(); err != nil {
		t.Error(err)
	}
}
