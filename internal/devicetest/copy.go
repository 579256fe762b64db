package devicetest

import (
	"bytes"
	"context"
	"slices"

	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/runtime"
)

// pattern is n bytes of which no two neighbourhoods are alike.
func pattern(n int) []byte {
	all := make([]byte, n)
	x := uint32(n)
	for i := range all {
		x = x*1664525 + 1013904223
		all[i] = byte(x >> 24)
	}
	return all
}

// copySizes are around what copies are cut into: pieces of 256 bytes, and
// staging blocks of 4 MiB.
var copySizes = []int{1, 3, 255, 256, 257, 4095, 65_537, 1<<20 - 1, 1 << 20, 4 << 20, 4<<20 + 1, 20<<20 + 13}

var copyTests = []test{
	{"bytes survive every kind of copy at every size", func(f *fixture) {
		w := f.memory(options{})
		s := w.streams(2)
		for _, n := range copySizes {
			data := pattern(n)
			a, b, in, out := w.bytes(int64(n)), w.bytes(int64(n)), w.pinned(int64(n)), w.pinned(int64(n))
			// From a plain slice, which may change at once, over the device to
			// another place and page-locked memory.
			slice := slices.Clone(data)
			w.within("copying in", func() error { return upload(s[0], a, slice) })
			clear(slice)
			w.move(s[1], b, a)
			w.move(s[0], out, b)
			w.ok(out.HostRead(context.Background(), func(x []byte) error {
				if !bytes.Equal(x, data) {
					w.t.Errorf("%d bytes differ after a slice, the device, the device and page-locked memory", n)
				}
				return nil
			}))
			// From page-locked memory over the device to a plain slice.
			slices.Reverse(data)
			w.ok(in.HostWrite(context.Background(), func(x []byte) error { copy(x, data); return nil }))
			w.move(s[1], a, in)
			w.within("copying out", func() error { return download(s[0], slice, a) })
			if !bytes.Equal(slice, data) {
				w.t.Errorf("%d bytes differ after page-locked memory, the device and a slice", n)
			}
			w.free(a, b, in, out)
		}
	}},
	{"copies between devices go through the ledgers of both, on a stream of either", func(f *fixture) {
		w := f.memory(options{})
		far := w.far()
		m := must(buffer.Of(far))
		for i, r := range []*runtime.Resources{w.r, far} {
			for _, n := range []int64{8 * words, 5 << 20} {
				near, there := w.bytes(n), w.own(m.New(n))
				s, nearby, beyond := w.lease(r), w.lease(w.r), w.lease(far)
				w.fill(nearby, near, int64(i+1))
				w.fill(beyond, there, 0)
				w.sync(nearby)
				w.sync(beyond)
				release := w.stall(s)
				w.move(s, there, near)
				// Both ledgers know of it, on streams of their own devices.
				w.fill(nearby, near, -1)
				w.look(beyond, there)
				w.pending("the overwriting of the source", w.tail(nearby))
				w.pending("the reading of the copy", w.tail(beyond))
				release()
				w.expect("the copy", beyond, there, int64(i+1))
				w.expect("the source", nearby, near, -1)
				for _, s := range []interface{ Release() error }{s, nearby, beyond} {
					w.ok(s.Release())
				}
			}
		}
	}},
	{"a chain of copies over all memory is submitted before any of it runs", func(f *fixture) {
		const n = 100_000
		w := f.memory(options{})
		s, data := w.streams(4), pattern(n)
		in, near, again, out := w.pinned(n), w.bytes(n), w.bytes(n), w.pinned(n)
		chain := []*buffer.Buffer{in, near, again, out}
		if w.families[0].Count() > 1 {
			chain = slices.Insert(chain, 2, w.own(must(buffer.Of(w.far())).New(n)))
		}
		w.ok(in.HostWrite(context.Background(), func(x []byte) error { copy(x, data); return nil }))
		release := w.stall(s[0])
		for i := range len(chain) - 1 {
			w.move(s[i], chain[i+1], chain[i])
		}
		w.pending("the last copy", w.tail(s[len(chain)-2]))
		release()
		w.ok(out.HostRead(context.Background(), func(x []byte) error {
			if !bytes.Equal(x, data) {
				w.t.Error("the bytes differ at the end of the chain")
			}
			return nil
		}))
	}},
	{"a small copy from plain memory does not wait for its stream", func(f *fixture) {
		w := f.memory(options{})
		s := w.streams(2)
		for _, n := range []int{1, 4096, 1 << 20} {
			b, data := w.bytes(int64(n)), pattern(n)
			release := w.stall(s[0])
			slice := slices.Clone(data)
			w.within("copying in behind a stall", func() error { return upload(s[0], b, slice) })
			clear(slice)
			w.pending("the copy", w.tail(s[0]))
			release()
			w.within("copying out", func() error { return download(s[1], slice, b) })
			if !bytes.Equal(slice, data) {
				w.t.Errorf("%d bytes saw what became of the slice", n)
			}
		}
	}},
}
