//go:build cuda

package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/csrc/floor"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/tensor"
)

const (
	copyBytes, quickCopyBytes = int64(1) << 30, int64(9) << 20
	leastSliceRate            = 25e9 // bytes a second
	leastPinnedFraction       = 0.97
)

func gpuCopyCases(env Env) []Case {
	size := copyBytes
	if env.Quick {
		size = quickCopyBytes
	}
	slice := Limit{Of: OfValue, Max: float64(size) / leastSliceRate / Milliseconds.seconds(1)}
	pinned := Limit{Of: OfRatio, Max: 1 / leastPinnedFraction}
	all := []struct {
		name   string
		limits []Limit
		ready  func(*transfer) (value, floor func() (time.Duration, error), err error)
	}{
		{"slice to device, tensor.From", []Limit{slice}, (*transfer).from},
		{"device to slice", []Limit{slice}, (*transfer).toSlice},
		{"device to a new slice, tensor.Data", nil, (*transfer).data},
		{"page-locked to device", []Limit{pinned}, (*transfer).pinnedIn},
		{"device to page-locked", []Limit{pinned}, (*transfer).pinnedOut},
	}
	var cases []Case
	for _, c := range all {
		made := Case{Name: fmt.Sprintf("%d MiB, %s / raw copy", size>>20, c.name), Unit: Milliseconds, Limits: c.limits}
		cases = append(cases, onGPU(env, made, 1, func(x *rig) (*Trial, error) {
			t, err := newTransfer(x, size)
			if err != nil {
				return nil, err
			}
			value, floor, err := c.ready(t)
			if err != nil {
				return nil, err
			}
			return &Trial{Value: repeated(value), Floor: repeated(floor), Fixed: 1, Check: func() error { return t.check(value, floor) },
				Figures: func(r Result) []Figure {
					rate := func(milliseconds float64) float64 { return float64(size) / Milliseconds.seconds(milliseconds) / 1e9 }
					return []Figure{{"rate", rate(r.Value), "GB/s"}, {"floor rate", rate(r.Floor), "GB/s"}}
				}}, nil
		}))
	}
	return cases
}

// repeated is the loop of an operation that takes its own time.
func repeated(op func() (time.Duration, error)) Loop {
	return func(n int) (took time.Duration, err error) {
		for range n {
			d, err := op()
			if err != nil {
				return 0, err
			}
			took += d
		}
		return took, nil
	}
}

// transfer copies one slice's worth of random bytes. device and at hold the same
// bytes as words once check has seen a copy to the device.
type transfer struct {
	x      *rig
	words  []int64
	device *tensor.Array
	at     floor.Address
	// What the last copy made, for check: plain bytes, or an array of value's.
	got    func() ([]byte, error)
	gotRaw func() ([]byte, error)
}

func newTransfer(x *rig, size int64) (*transfer, error) {
	t := &transfer{x: x, words: make([]int64, size/8)}
	random := rand.New(rand.NewPCG(uint64(size), 3))
	for i := range t.words {
		t.words[i] = int64(random.Uint64())
	}
	var err error
	if t.device, err = tensor.From(x.ctx, t.words); err != nil {
		return nil, err
	}
	x.later(t.device.Free)
	if t.at, err = x.alloc(size); err != nil {
		return nil, err
	}
	_, err = x.gpu.CopyIn(t.at, bytesOf(t.words))
	return t, err
}

// check compares what both copied with what they were given.
func (t *transfer) check(value, floor func() (time.Duration, error)) error {
	for name, c := range map[string]struct {
		copy func() (time.Duration, error)
		got  *func() ([]byte, error)
	}{"Weir's": {value, &t.got}, "the raw": {floor, &t.gotRaw}} {
		if _, err := c.copy(); err != nil {
			return err
		}
		got, err := (*c.got)()
		if err != nil {
			return err
		}
		if !bytes.Equal(got, bytesOf(t.words)) {
			return wrong("%s copy is not what it was made of", name)
		}
	}
	return nil
}

// arrayBytes are a's elements, read back as words.
func arrayBytes(ctx context.Context, a *tensor.Array) ([]byte, error) {
	words, err := tensor.Data[int64](ctx, a)
	return bytesOf(words), err
}

// rawBytes are what lies at the floor's address.
func (t *transfer) rawBytes() ([]byte, error) {
	words := make([]int64, len(t.words))
	_, err := t.x.gpu.CopyOut(bytesOf(words), t.at)
	return bytesOf(words), err
}

// clearDevice takes the bytes off the floor's memory, so that a copy that moves
// nothing shows.
func (t *transfer) clearDevice() error {
	_, err := t.x.gpu.CopyIn(t.at, make([]byte, len(t.words)*8))
	return err
}

func (t *transfer) from() (value, floor func() (time.Duration, error), err error) {
	var last *tensor.Array
	t.x.later(func() error {
		if last == nil {
			return nil
		}
		return last.Free()
	})
	t.got = func() ([]byte, error) { return arrayBytes(t.x.ctx, last) }
	t.gotRaw = t.rawBytes
	return func() (time.Duration, error) {
		if last != nil {
			if err := last.Free(); err != nil {
				return 0, err
			}
		}
		start := time.Now()
		var err error
		if last, err = tensor.From(t.x.ctx, t.words); err != nil {
			return 0, err
		}
		err = settle(last)
		return time.Since(start), err
	}, t.rawIn(bytesOf(t.words)), t.clearDevice()
}

// rawIn copies to the floor's memory.
func (t *transfer) rawIn(src []byte) func() (time.Duration, error) {
	return func() (time.Duration, error) {
		times, err := t.x.gpu.CopyIn(t.at, src)
		return times.Done, err
	}
}

func (t *transfer) rawOut(dst []byte) func() (time.Duration, error) {
	return func() (time.Duration, error) {
		times, err := t.x.gpu.CopyOut(dst, t.at)
		return times.Done, err
	}
}

// toSlice copies to a slice that is there, as Data does to its new one.
func (t *transfer) toSlice() (value, floor func() (time.Duration, error), err error) {
	here, there := make([]byte, len(t.words)*8), make([]byte, len(t.words)*8)
	t.got = func() ([]byte, error) { return here, nil }
	t.gotRaw = func() ([]byte, error) { return there, nil }
	return t.on(func(acc *buffer.Access, s driver.Stream) error {
		p := acc.Read(t.device.Buffer())
		if acc.Err() != nil {
			return nil // the scope's end answers it
		}
		return s.CopyOut(here, p)
	}), t.rawOut(there), nil
}

func (t *transfer) data() (value, floor func() (time.Duration, error), err error) {
	var last []int64
	there := make([]byte, len(t.words)*8)
	t.got = func() ([]byte, error) { return bytesOf(last), nil }
	t.gotRaw = func() ([]byte, error) { return there, nil }
	return func() (time.Duration, error) {
		start := time.Now()
		var err error
		last, err = tensor.Data[int64](t.x.ctx, t.device)
		return time.Since(start), err
	}, t.rawOut(there), nil
}

// pinned answers a page-locked buffer of Weir's, with the words if it is filled,
// and page-locked memory of the floor's.
func (t *transfer) pinned(filled bool) (*buffer.Buffer, []byte, error) {
	size := int64(len(t.words)) * 8
	m, err := buffer.Of(t.x.r)
	if err != nil {
		return nil, nil, err
	}
	b, err := m.NewPinned(size)
	if err != nil {
		return nil, nil, err
	}
	t.x.later(b.Free)
	raw, err := t.x.gpu.AllocHost(size)
	if err != nil {
		return nil, nil, err
	}
	t.x.later(func() error { return t.x.gpu.FreeHost(raw) })
	return b, raw, b.HostWrite(t.x.ctx, func(to []byte) error {
		if filled {
			copy(to, bytesOf(t.words))
			copy(raw, to)
		} else {
			clear(to)
			clear(raw)
		}
		return nil
	})
}

func (t *transfer) pinnedIn() (value, floor func() (time.Duration, error), err error) {
	host, raw, err := t.pinned(true)
	if err != nil {
		return nil, nil, err
	}
	to, err := tensor.Zeros(t.x.ctx, t.device.DType(), len(t.words))
	if err != nil {
		return nil, nil, err
	}
	t.x.later(to.Free)
	t.got = func() ([]byte, error) { return arrayBytes(t.x.ctx, to) }
	t.gotRaw = t.rawBytes
	return t.on(copyBuffer(to.Buffer(), host)), t.rawIn(raw), t.clearDevice()
}

func (t *transfer) pinnedOut() (value, floor func() (time.Duration, error), err error) {
	host, raw, err := t.pinned(false)
	if err != nil {
		return nil, nil, err
	}
	t.got = func() (got []byte, err error) {
		err = host.HostRead(t.x.ctx, func(b []byte) error {
			got = bytes.Clone(b)
			return nil
		})
		return got, err
	}
	t.gotRaw = func() ([]byte, error) { return raw, nil }
	return t.on(copyBuffer(host, t.device.Buffer())), t.rawOut(raw), nil
}

// copyBuffer submits a copy of all of a buffer.
func copyBuffer(dst, src *buffer.Buffer) func(*buffer.Access, driver.Stream) error {
	return func(acc *buffer.Access, s driver.Stream) error {
		from, to := acc.Read(src), acc.Write(dst)
		if acc.Err() != nil {
			return nil // the scope's end answers it
		}
		return s.Copy(to, from, src.Bytes())
	}
}

// on times what submit does on a stream of the pool, until it is done.
func (t *transfer) on(submit func(*buffer.Access, driver.Stream) error) func() (time.Duration, error) {
	return func() (time.Duration, error) {
		start := time.Now()
		s, err := t.x.r.Streams().Acquire(t.x.ctx)
		if err != nil {
			return 0, err
		}
		acc := buffer.Begin(s)
		d, err := s.Submit()
		if err == nil {
			err = submit(&acc, d)
		}
		err = errors.Join(err, acc.End(), s.Synchronize(context.Background()))
		took := time.Since(start)
		return took, errors.Join(err, s.Release())
	}
}
