//go:build cuda

package cuda_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/cuda/cudatest"
)

// pair is two simulated devices, each with a stream and memory of a pool.
type pair struct {
	d     [2]driver.Device
	s     [2]driver.Stream
	pools [2]driver.Pool
	at    [2]driver.Ptr
}

const pairBytes = 64

func newPair(t *testing.T) *pair {
	t.Helper()
	simulated(t)
	f := gpus(t)
	if f.Count() < 2 {
		t.Skip("there is one device")
	}
	x := &pair{}
	for i := range x.d {
		x.d[i] = must(f.Open(i))
		x.s[i] = must(x.d[i].NewStream(0))
		x.pools[i] = must(x.d[i].NewPool(driver.PoolConfig{}))
		x.at[i] = must(x.pools[i].Alloc(x.s[i], pairBytes))
		ok(t, x.s[i].Synchronize())
	}
	return x
}

// copy moves bytes from the first device to the second on a stream of the first.
func (x *pair) copy() error { return x.s[0].CopyPeer(x.at[1], 1, x.at[0], 0, pairBytes) }

// arrives checks that a copy brings the bytes over.
func (x *pair) arrives(t *testing.T, value byte) {
	t.Helper()
	want, got := bytes.Repeat([]byte{value}, pairBytes), make([]byte, pairBytes)
	ok(t, errors.Join(x.s[0].CopyIn(x.at[0], want), x.copy(), x.s[0].Synchronize(), x.s[1].CopyOut(got, x.at[1])))
	if !bytes.Equal(got, want) {
		t.Errorf("the other device has %d; expected %d", got[0], value)
	}
}

func (x *pair) close(t *testing.T) {
	t.Helper()
	for i := range x.d {
		ok(t, errors.Join(x.pools[i].Free(x.s[i], x.at[i]), x.pools[i].Destroy(), x.s[i].Destroy()))
	}
}

// TestPoolsGiveAccessOnceToWhomCopiesGo counts what makes copies fast.
func TestPoolsGiveAccessOnceToWhomCopiesGo(t *testing.T) {
	x := newPair(t)
	defer x.close(t)
	gave := func(what string, want int, do func()) {
		t.Helper()
		before := cudatest.Count("cuMemPoolSetAccess")
		do()
		if n := cudatest.Count("cuMemPoolSetAccess") - before; n != want {
			t.Errorf("%s: access was given %d times; expected %d", what, n, want)
		}
	}
	// A plain copy says whether it is there: the driver refuses it without.
	if err := x.s[0].Copy(x.at[0], x.at[1], 8); err == nil {
		t.Error("a plain copy reaches a pool without access")
	}
	gave("the first copy", 2, func() { x.arrives(t, 1) })
	ok(t, errors.Join(x.s[0].Copy(x.at[0], x.at[1], 8), x.s[1].Copy(x.at[1], x.at[0], 8)))
	gave("later copies", 0, func() {
		x.arrives(t, 2)
		ok(t, x.s[1].CopyPeer(x.at[0], 0, x.at[1], 1, pairBytes))
	})
	var late driver.Pool
	gave("a later pool", 1, func() { late = must(x.d[1].NewPool(driver.PoolConfig{})) })
	p := must(late.Alloc(x.s[1], 8))
	ok(t, errors.Join(x.s[1].Synchronize(), x.s[0].Copy(p, x.at[0], 8), x.s[0].Synchronize(), late.Free(x.s[1], p), late.Destroy()))
}

func TestCopiesDoWithoutAccess(t *testing.T) {
	for _, function := range []string{"cuDeviceCanAccessPeer", "cuMemPoolSetAccess"} {
		t.Run(function, func(t *testing.T) {
			x := newPair(t)
			defer x.close(t)
			const invalid = 1 // CUDA_ERROR_INVALID_VALUE
			cudatest.Fail(function, 1, invalid)
			cudatest.Fail(function, 2, invalid)
			x.arrives(t, 3)
			if x.s[0].Copy(x.at[0], x.at[1], 8) == nil {
				t.Error("the access that failed was given")
			}
			cudatest.Fail(function, 1, invalid)
			ok(t, must(x.d[0].NewPool(driver.PoolConfig{})).Destroy())
			if err := errors.Join(x.d[0].Err(), x.d[1].Err()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestADeathWhileAccessIsGivenIsTold(t *testing.T) {
	for nth := 1; nth <= 3; nth++ {
		x := newPair(t)
		const illegal = 700 // CUDA_ERROR_ILLEGAL_ADDRESS
		cudatest.Fail("cuMemPoolSetAccess", nth, illegal)
		err := x.copy()
		if nth == 3 { // a pool made later
			ok(t, err)
			_, err = x.d[0].NewPool(driver.PoolConfig{})
		}
		var e *weir.Error
		if !errors.Is(err, weir.ErrDeviceLost) || !errors.As(err, &e) || e.Device != "cuda:0" {
			t.Errorf("access %d: %v; expected the lost device, told by cuda:0", nth, err)
		}
		for i := range x.d {
			_ = x.pools[i].Destroy() // of a dead device, as below
			_ = x.s[i].Destroy()
		}
		revive(t)
	}
}

// TestTheNeighboursDeathNamesTheFirst has the messages say what a user cannot guess.
func TestTheNeighboursDeathNamesTheFirst(t *testing.T) {
	x := newPair(t)
	defer revive(t)
	defer func() {
		for i := range x.d {
			_ = x.pools[i].Destroy() // of a dead device, as below
			_ = x.s[i].Destroy()
		}
	}()
	cause := cudatest.Kill(x.d[0])
	err := x.s[1].Zero(x.at[1], 8)
	if !errors.Is(err, cause) || cause != x.d[0].Err() {
		t.Errorf("the neighbour answers %v; expected what %v is the cause of", err, cause)
	}
	const want = " on cuda:1: first seen on cuda:0; a fault on one GPU ends all CUDA devices of the process (CUDA_ERROR_ILLEGAL_ADDRESS, code 700): "
	if text := x.d[1].Err().Error(); !bytes.Contains([]byte(text), []byte(want)) {
		t.Errorf("the neighbour's error is %q; expected it to say %q", text, want)
	}
}
