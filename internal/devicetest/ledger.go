package devicetest

import (
	"fmt"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/fault"
)

var ledgerTests = []test{
	{"a read waits for the latest writer", func(f *fixture) {
		w := f.memory(options{})
		s, b, out := w.streams(2), w.new(words), w.new(words)
		w.fill(s[1], b, 1)
		w.sync(s[1])
		release := w.stall(s[0])
		w.fill(s[0], b, 2)
		w.move(s[1], out, b)
		w.pending("the read", w.tail(s[1]))
		release()
		w.expect("what the read saw", s[1], out, 2)
	}},
	{"a write waits for the writer and every unfinished reader", func(f *fixture) {
		w := f.memory(options{})
		s, b := w.streams(4), w.new(words)
		outs := []*buffer.Buffer{w.new(words), w.new(words)}
		w.fill(s[0], b, 1)
		w.sync(s[0])
		releases := []func(){w.stall(s[0])}
		w.fill(s[0], b, 2)
		for i, out := range outs {
			releases = append(releases, w.stall(s[1+i]))
			w.move(s[1+i], out, b)
		}
		w.fill(s[3], b, 3)
		write := w.tail(s[3])
		for i, release := range releases {
			w.pending(fmt.Sprintf("the write with %d of 3 before it released", i), write)
			release()
		}
		for _, out := range outs {
			w.expect("what a reader saw", s[3], out, 2)
		}
		w.expect("what was written at last", s[3], b, 3)
	}},
	{"readers do not wait for readers", func(f *fixture) {
		w := f.memory(options{})
		s, b, out := w.streams(3), w.new(words), w.new(words)
		w.fill(s[0], b, 7)
		w.stall(s[1])
		w.look(s[1], b)
		w.move(s[2], out, b)
		w.expect("what the second reader saw", s[2], out, 7)
		w.pending("the first reader", w.tail(s[1]))
	}},
	{"one scope publishes one completion to every operand", func(f *fixture) {
		w := f.memory(options{counted: true})
		s := w.streams(2)
		target, one := w.new(words), w.new(words)
		var all []*buffer.Buffer
		for range 8 { // more than an access keeps in place
			all = append(all, w.new(words))
		}
		for _, b := range append(all, target, one) {
			w.fill(s[0], b, 1)
		}
		w.sync(s[0])
		release := w.stall(s[0])
		if n := w.count(fault.StreamRecord, func() {
			w.ok(operate(s[0], target, all, func(d driver.Stream, at []driver.Ptr) error {
				return d.Copy(at[0], at[8], 8*words) // the last of them
			}))
		}); n != 1 {
			w.t.Errorf("%d completions were recorded; expected 1", n)
		}
		for i, b := range all {
			w.fill(s[1], b, 2)
			w.pending(fmt.Sprintf("the write of operand %d", i), w.tail(s[1]))
		}
		w.step(s[1], target, one, 10)
		release()
		w.expect("the result", s[1], target, 11)
	}},
	{"a chain over many streams is submitted without waiting and runs in order", func(f *fixture) {
		w := f.memory(options{})
		s, b, one := w.streams(3), w.new(words), w.new(words)
		w.fill(s[0], b, 1)
		w.fill(s[0], one, 1)
		w.sync(s[0])
		release := w.stall(s[0])
		want := int64(1)
		for i := range int64(45) {
			factor := 2 + i%3
			w.step(s[i%3], b, one, factor)
			want = factor*want + 1 // wraps, as the device does
		}
		w.pending("the chain", w.tail(s[2]))
		release()
		w.expect("the chain", s[1], b, want)
	}},
	{"a conflict is refused at once and nothing else is", func(f *fixture) {
		w := f.memory(options{})
		s, b := w.streams(2), w.new(words)
		w.stall(s[0])
		w.fill(s[0], b, 1) // unfinished on the device, ended in program order
		refused := func(with string) {
			w.t.Helper()
			text := " on " + w.name + ": the buffer of 512 bytes has " + with + "; end that access first"
			acc := buffer.Begin(s[1])
			if p := acc.Write(b); p != 0 {
				w.t.Errorf("a refused write answers %#x", p)
			}
			w.refused(acc.End(), weir.ErrBusy, "buffer.Write%s", text)
			w.refused(b.Free(), weir.ErrBusy, "buffer.Free%s", text)
			w.refused(second(b.Partition(buffer.Range{Bytes: 8})), weir.ErrBusy, "buffer.Partition%s", text)
		}
		first, again := buffer.Begin(s[1]), buffer.Begin(s[1])
		first.Read(b)
		refused("an open read")
		again.Read(b)
		w.ok(again.Err())
		refused("2 open reads")
		w.ok(first.End())
		w.ok(again.End())
		writing := buffer.Begin(s[1])
		writing.Write(b)
		w.ok(writing.Err())
		refused("an open write")
		acc := buffer.Begin(s[1])
		acc.Read(b)
		w.refused(acc.End(), weir.ErrBusy, "buffer.Read on %s: the buffer of 512 bytes has an open write; end that access first", w.name)
		w.ok(writing.End())
		w.fill(s[1], b, 2) // all has ended
	}},
	{"waits for finished work and for the same stream are no driver call", func(f *fixture) {
		w := f.memory(options{counted: true})
		s, b := w.streams(4), w.new(words)
		expect := func(what string, want int, do func()) {
			w.t.Helper()
			if n := w.count(fault.StreamWait, do); n != want {
				w.t.Errorf("%s: %d driver waits; expected %d", what, n, want)
			}
		}
		w.fill(s[0], b, 1)
		w.sync(s[0])
		expect("a finished writer", 0, func() { w.look(s[1], b) })
		w.sync(s[1])
		expect("finished readers", 0, func() { w.fill(s[2], b, 2) })
		w.sync(s[2])
		w.stall(s[0])
		expect("its own stream", 0, func() { w.fill(s[0], b, 3); w.look(s[0], b); w.fill(s[0], b, 4) })
		expect("another stream's writer", 1, func() { w.look(s[1], b) })
		expect("the same again", 1, func() { w.look(s[2], b) })
		expect("a writer and two readers, of which one is its own", 2, func() { w.fill(s[1], b, 5) })
	}},
	{"after many reads a write waits once for each stream", func(f *fixture) {
		w := f.memory(options{counted: true})
		s, b := w.streams(5), w.new(words)
		w.fill(s[4], b, 1)
		w.sync(s[4])
		for _, s := range s[:4] {
			w.stall(s)
			for range 10 {
				w.look(s, b)
			}
		}
		if n := w.count(fault.StreamWait, func() { w.fill(s[4], b, 2) }); n != 4 {
			w.t.Errorf("%d waits for 40 readers on 4 streams; expected 4", n)
		}
	}},
	{"an operand of another device is refused, naming both", func(f *fixture) {
		w := f.memory(options{})
		far := w.far()
		s, b := w.lease(w.r), w.own(must(buffer.Of(far)).New(64))
		for name, open := range map[string]func(*buffer.Access, *buffer.Buffer) buffer.Ptr{"Read": (*buffer.Access).Read, "Write": (*buffer.Access).Write} {
			acc := buffer.Begin(s)
			open(&acc, b)
			w.refused(acc.End(), weir.ErrArgument, "buffer.%s on %s: the buffer is on %s and the stream on %s; copy the data to one device first",
				name, w.name, far.Device().Name(), w.name)
		}
	}},
	{"a freed buffer's handle never touches the next owner", func(f *fixture) {
		w := f.memory(options{})
		s := w.lease(w.r)
		old := w.new(words)
		w.free(old)
		next := w.new(words)
		w.fill(s, next, 1)
		acc := buffer.Begin(s)
		acc.Write(old)
		w.refused(acc.End(), weir.ErrClosed, "buffer.Write on %s: the buffer was freed or partitioned; expected a live one", w.name)
		w.free(old)
		w.expect("the next owner", s, next, 1)
	}},
	{"when recording fails End waits for the work and answers the failure", func(f *fixture) {
		w := f.memory(options{counted: true})
		s, b := w.streams(2), w.new(words)
		w.fill(s[0], b, 1)
		w.sync(s[0])
		release := w.stall(s[0])
		acc := buffer.Begin(s[0])
		p := acc.Write(b)
		w.ok(must(s[0].Submit()).Launch(&driver.Kernel{Op: driver.KernelFill, Out: line(p, words), Alpha: 2}))
		w.plan.FailNth(fault.StreamRecord, 1, errCause)
		waited := false
		w.plan.Delay(fault.StreamSynchronize, func() { // the work goes on when End waits
			waited = true
			release()
		})
		err := w.start("End", acc.End).join()
		w.plan.Clear()
		w.refused(err, errCause, "stream.Record on stream %s (INJECTED, code 0): Stream.Record on %s: call %d was made to fail (INJECTED, code 0): %v", s[0],
			w.name, w.plan.Counts()[fault.StreamRecord], errCause)
		if !waited {
			w.t.Error("End did not wait for work that it could not record")
		}
		if n := w.count(fault.StreamWait, func() { w.look(s[1], b) }); n != 0 {
			w.t.Errorf("the next access made %d driver waits for work that is done", n)
		}
		w.expect("the work", s[1], b, 2)
	}},
	{"an access that is stuck in the driver holds up no other", func(f *fixture) {
		for _, call := range []fault.Call{fault.StreamWait, fault.StreamRecord} {
			w := f.memory(options{counted: true})
			s, b := w.streams(2), w.new(words)
			mine, x, y := w.streams(2), w.new(words), w.new(words)
			for _, b := range []*buffer.Buffer{b, x, y} {
				w.fill(mine[0], b, 1)
			}
			w.sync(mine[0])
			release := w.stall(s[0])
			w.fill(s[0], b, 2) // s[1] will wait for it
			stuck, gate := make(chan struct{}), make(chan struct{})
			first := true
			w.plan.Delay(call, func() {
				if first { // nobody else calls before it is stuck
					first = false
					close(stuck)
					<-gate
				}
			})
			other := w.start("the stuck access", func() error { return fill(s[1], b, 3) })
			receive(w.fixture, "the stuck access", stuck)
			for i := range 20 {
				w.move(mine[i%2], y, x)
				x, y = y, x
			}
			w.expect("what others did meanwhile", mine[0], x, 1)
			if other.ended() {
				w.t.Error("the access was not stuck, and nothing is shown")
			}
			close(gate)
			w.ok(other.join())
			release()
			w.expect("the access that was stuck", s[1], b, 3)
			w.plan.Clear()
			for _, s := range append(s, mine...) {
				w.ok(s.Release())
			}
			w.free(b, x, y)
			w.within("Close", w.rt.Close)
		}
	}},
}

var partitionTests = []test{
	{"parts inherit the ledger and then have their own", func(f *fixture) {
		w := f.memory(options{})
		s, whole, out := w.streams(4), w.new(2*words), []*buffer.Buffer{w.new(words), w.new(words)}
		w.fill(s[1], whole, 0)
		w.sync(s[1])
		release := w.stall(s[0])
		w.fill(s[0], whole, 1)
		parts, err := whole.Partition(buffer.Range{Bytes: 8 * words}, buffer.Range{Offset: 8 * words, Bytes: 8 * words})
		w.ok(err)
		for i, p := range parts {
			w.own(p, nil)
			w.move(s[1+i], out[i], p)
			w.pending("a read of a part", w.tail(s[1+i]))
		}
		release()
		for i := range parts {
			w.expect("what a read of a part saw", s[3], out[i], 1)
		}
		// From now on they do not know of each other.
		w.stall(s[1])
		w.fill(s[1], parts[0], 2)
		w.fill(s[3], parts[1], 3)
		w.expect("a part beside a stalled one", s[3], parts[1], 3)
		w.pending("the stalled part", w.tail(s[1]))
		if whole.Live() {
			w.t.Error("the parent lives on")
		}
		acc := buffer.Begin(s[3])
		acc.Read(whole)
		w.refused(acc.End(), weir.ErrClosed, "buffer.Read on %s: the buffer was freed or partitioned; expected a live one", w.name)
	}},
	{"the memory is freed with the last part, after every part's users", func(f *fixture) {
		const part = 40 << 20
		w := f.memory(options{counted: true, ResourceOptions: keepNothing()})
		w.pooled()
		s := w.streams(2)
		big, keep := w.bytes(2*part), w.bytes(part)
		parts, err := big.Partition(buffer.Range{Bytes: part}, buffer.Range{Offset: part, Bytes: part})
		w.ok(err)
		w.fill(s[1], parts[0], 1)
		w.sync(s[1])
		release := w.stall(s[0])
		w.move(s[0], keep, parts[0])
		if n := w.count(fault.PoolFree, func() { w.free(parts[0]) }); n != 0 {
			w.t.Error("the first part's end freed the memory")
		}
		if n := w.count(fault.PoolFree, func() { w.free(parts[1]) }); n != 1 {
			w.t.Errorf("the last part's end made %d frees; expected 1", n)
		}
		if held := w.held(); held < 3*part {
			w.t.Errorf("%d bytes are held while the first part is read; expected all of %d", held, 3*part)
		}
		next := w.bytes(2 * part)
		w.fill(s[1], next, 2)
		release()
		w.expect("what the first part's reader saw", s[1], keep, 1)
		w.free(keep, next)
		w.expectNoneHeld()
	}},
}
