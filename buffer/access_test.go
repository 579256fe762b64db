package buffer_test

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"sync"
	"testing"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/internal/driver/fault"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/stream"
)

// Values that device work shares in these tests are plain Go variables: where
// the ledger did not order it, the race detector would say so.

func TestAReadWaitsForTheLatestWriter(t *testing.T) {
	w := newWorld(t, options{})
	s, b := w.streams(2), w.new(64)
	defer w.free(b)
	value := 0
	release := w.stall(s[0])
	w.write(s[0], b, func(buffer.Ptr) { value = 1 })
	seen := -1
	read := w.read(s[1], b, func(buffer.Ptr) { seen = value })
	if happened(read) {
		t.Error("the read ran before the write")
	}
	release()
	arrives(t, read)
	if seen != 1 {
		t.Errorf("the read saw %d; expected the written 1", seen)
	}
}

func TestAWriteWaitsForTheWriterAndEveryUnfinishedReader(t *testing.T) {
	w := newWorld(t, options{})
	s, b := w.streams(4), w.new(64)
	defer w.free(b)
	var done [3]bool
	var release [3]func()
	release[0] = w.stall(s[0])
	w.write(s[0], b, func(buffer.Ptr) { done[0] = true })
	for i := 1; i < 3; i++ {
		release[i] = w.stall(s[i])
		w.read(s[i], b, func(buffer.Ptr) { done[i] = true })
	}
	var seen [3]bool
	write := w.write(s[3], b, func(buffer.Ptr) { seen = done })
	for _, open := range release {
		if happened(write) {
			t.Error("the write ran while others used the buffer")
		}
		open()
	}
	arrives(t, write)
	if seen != [3]bool{true, true, true} {
		t.Errorf("the write found writer and readers done: %v", seen)
	}
}

func TestReadersDoNotWaitForReaders(t *testing.T) {
	w := newWorld(t, options{})
	s, b := w.streams(3), w.new(64)
	defer w.free(b)
	value := 0
	w.write(s[0], b, func(buffer.Ptr) { value = 7 })
	w.stall(s[1])
	stalled := w.read(s[1], b, nil)
	seen := 0
	arrives(t, w.read(s[2], b, func(buffer.Ptr) { seen = value }))
	if seen != 7 || happened(stalled) {
		t.Errorf("the second reader saw %d; the first, stalled one ran: %t", seen, happened(stalled))
	}
}

func TestAChainOverManyStreamsIsSubmittedWithoutWaitingAndRunsInOrder(t *testing.T) {
	w := newWorld(t, options{})
	s, b := w.streams(3), w.new(64)
	defer w.free(b)
	release := w.stall(s[0])
	const links = 300
	var ran []int
	var last <-chan struct{}
	for i := range links {
		last = w.write(s[i%3], b, func(buffer.Ptr) { ran = append(ran, i) })
	}
	if happened(last) {
		t.Error("the chain ran through a stalled stream")
	}
	release()
	arrives(t, last)
	for i, x := range ran {
		if i != x {
			t.Fatalf("link %d ran in place %d", x, i)
		}
	}
	if len(ran) != links {
		t.Errorf("%d links ran; expected %d", len(ran), links)
	}
}

func TestOneScopePublishesOneCompletionToEveryOperand(t *testing.T) {
	w := newWorld(t, options{})
	s := w.streams(2)
	var all []*buffer.Buffer
	for range 9 {
		all = append(all, w.new(64))
	}
	defer w.free(all...)
	release := w.stall(s[0])
	worked := false
	records := w.count(fault.StreamRecord, func() {
		acc := buffer.Begin(s[0])
		for i, b := range all {
			if i%2 == 0 {
				acc.Write(b)
			} else {
				acc.Read(b)
			}
		}
		w.ok(acc.Err())
		w.ok(s[0].Call(func() { worked = true }))
		w.ok(acc.End())
	})
	if records != 1 {
		t.Errorf("%d completions were recorded; expected 1", records)
	}
	var checks []<-chan struct{}
	for i, b := range all {
		checks = append(checks, w.write(s[1], b, func(buffer.Ptr) {
			if !worked {
				t.Errorf("operand %d was written before the scope's work was done", i)
			}
		}))
	}
	release()
	for _, c := range checks {
		arrives(t, c)
	}
}

func TestAnAccessYieldsTheBuffersAddress(t *testing.T) {
	w := newWorld(t, options{})
	s, b := w.lease(w.r), w.new(1000)
	defer w.free(b)
	acc := buffer.Begin(s)
	if p, q := acc.Read(b), acc.Read(b); p != buffer.Address(b) || q != p {
		t.Errorf("two reads answer %#x and %#x; expected %#x", p, q, buffer.Address(b))
	}
	w.ok(acc.End())
}

func TestWaitsForFinishedWorkAndForTheSameStreamAreNoDriverCall(t *testing.T) {
	w := newWorld(t, options{})
	s := w.streams(4)
	b := w.new(64)
	defer w.free(b)
	w.wait(w.r.Reclaim()) // the memory is ready
	expect := func(what string, want int, do func()) {
		t.Helper()
		if got := w.count(fault.StreamWait, do); got != want {
			t.Errorf("%s: %d driver waits; expected %d", what, got, want)
		}
	}
	expect("a fresh buffer", 0, func() { w.write(s[0], b, nil) })
	expect("a finished writer", 0, func() {
		w.wait(s[0])
		w.read(s[1], b, nil)
	})
	expect("finished readers", 0, func() {
		w.wait(s[1])
		w.write(s[2], b, nil)
	})
	w.wait(s[2])
	release := w.stall(s[0])
	expect("its own stream", 0, func() {
		w.write(s[0], b, nil)
		w.read(s[0], b, nil)
		w.write(s[0], b, nil)
	})
	expect("another stream's writer", 1, func() { w.read(s[1], b, nil) })
	expect("the same again", 1, func() { w.read(s[2], b, nil) })
	expect("a writer and two readers, of which one is its own", 2, func() { w.write(s[1], b, nil) })
	release()
	for _, s := range s {
		w.wait(s)
	}
}

func TestFinishedReadersLeaveTheLedger(t *testing.T) {
	w := newWorld(t, options{})
	b := w.new(64)
	defer w.free(b)
	for i, s := range w.streams(6) {
		w.read(s, b, nil)
		if n := buffer.LedgerLength(b); n > 2 { // this one, and what the memory came with
			t.Errorf("after %d readers, of which the others are done, the ledger has %d completions", i+1, n)
		}
		w.wait(s)
	}
}

// Conflicts are of program order: what has ended never conflicts, however
// unfinished it is on the device.
func TestAConflictIsRefusedAtOnceAndNothingElseIs(t *testing.T) {
	w := newWorld(t, options{})
	s, b := w.streams(2), w.new(64)
	defer w.free(b)
	w.stall(s[0])
	w.write(s[0], b, nil)

	host := func(do func(context.Context, func([]byte) error) error) error {
		return do(context.Background(), func([]byte) error { t.Error("host code ran"); return nil })
	}
	refused := func(with string) {
		t.Helper()
		acc := buffer.Begin(s[1])
		p := acc.Write(b)
		refuses(t, acc.Err(), weir.ErrBusy, "buffer.Write on host:0: the buffer of 64 bytes has %s; end that access first", with)
		if p != 0 || acc.End() != acc.Err() {
			t.Errorf("the refused write answers %#x and End another error", p)
		}
		refuses(t, host(b.HostWrite), weir.ErrBusy, "buffer.HostWrite on host:0: the buffer of 64 bytes has %s; end that access first", with)
		refuses(t, b.Free(), weir.ErrBusy, "buffer.Free on host:0: the buffer of 64 bytes has %s; end that access first", with)
		_, err := b.Partition(buffer.Range{Bytes: 64})
		refuses(t, err, weir.ErrBusy, "buffer.Partition on host:0: the buffer of 64 bytes has %s; end that access first", with)
	}

	reading := buffer.Begin(s[1])
	reading.Read(b)
	refused("an open read")
	again := buffer.Begin(s[1])
	again.Read(b)
	w.ok(again.Err())
	refused("2 open reads")
	if p := reading.Write(b); p != 0 || !errors.Is(reading.Err(), weir.ErrBusy) {
		t.Errorf("a write beside its own scope's read answers %#x, %v", p, reading.Err())
	}
	if err := reading.End(); !errors.Is(err, weir.ErrBusy) {
		t.Errorf("End answers %v; expected the refusal", err)
	}
	w.ok(again.End())

	writing := buffer.Begin(s[1])
	writing.Write(b)
	refused("an open write")
	acc := buffer.Begin(s[1])
	acc.Read(b)
	refuses(t, acc.Err(), weir.ErrBusy, "buffer.Read on host:0: the buffer of 64 bytes has an open write; end that access first")
	refuses(t, host(b.HostRead), weir.ErrBusy, "buffer.HostRead on host:0: the buffer of 64 bytes has an open write; end that access first")
	if writing.Write(b) != 0 || !errors.Is(writing.Err(), weir.ErrBusy) {
		t.Errorf("a second write of one scope: %v; expected a conflict", writing.Err())
	}
	_ = writing.End()

	w.write(s[1], b, nil) // all has ended
	if b.Bytes() != 64 || !b.Live() {
		t.Errorf("after the refusals the buffer has %d bytes", b.Bytes())
	}
}

func TestAccessesOfAStaleStreamAFreedBufferOrAnotherDeviceAreRefused(t *testing.T) {
	w := newWorld(t, options{})
	s, b := w.lease(w.r), w.new(64)
	gone, far := w.new(8), must(w.other.New(8))
	w.free(gone)
	defer w.free(b, far)

	expect := func(s stream.Stream, b *buffer.Buffer, sentinel error, read, write string) {
		t.Helper()
		for op, text := range map[bool]string{false: read, true: write} {
			acc := buffer.Begin(s)
			p := (*buffer.Access).Read(&acc, b)
			if op {
				acc = buffer.Begin(s)
				p = acc.Write(b)
			}
			refuses(t, acc.Err(), sentinel, "%s", text)
			if p != 0 || acc.End() != acc.Err() {
				t.Errorf("it answers %#x, and End %v", p, acc.End())
			}
		}
	}
	expect(stream.Stream{}, b, weir.ErrStale,
		"buffer.Read: the access's stream was released; expected a live one",
		"buffer.Write: the access's stream was released; expected a live one")
	expect(s, gone, weir.ErrClosed,
		"buffer.Read on host:0: the buffer was freed or partitioned; expected a live one",
		"buffer.Write on host:0: the buffer was freed or partitioned; expected a live one")
	expect(s, far, weir.ErrArgument,
		"buffer.Read on host:0: the buffer is on host:1 and the stream on host:0; copy the data to one device first",
		"buffer.Write on host:0: the buffer is on host:1 and the stream on host:0; copy the data to one device first")
}

func TestACopyMayUseAStreamOfEitherDevice(t *testing.T) {
	w := newWorld(t, options{})
	near, far := w.new(64), must(w.other.New(64))
	defer w.free(near, far)
	for i, r := range must(runtime.Enrolled()) {
		s := w.lease(r)
		release := w.stall(s)
		acc := buffer.BeginCopy(s)
		from, to := acc.Read(near), acc.Write(far)
		w.ok(acc.Err())
		w.ok(must(s.Submit()).Copy(to, from, 64))
		w.ok(acc.End())
		copied := false
		w.ok(s.Call(func() { copied = true }))
		acc = buffer.BeginCopy(s)
		acc.Read(far)
		w.ok(acc.End())
		// Both ledgers know of it, on streams of their own devices.
		after := w.lease(r)
		check := w.write(w.lease(w.r), near, nil)
		if happened(check) {
			t.Errorf("stream of device %d: the source was overwritten while it was copied", i)
		}
		acc = buffer.BeginCopy(after)
		acc.Write(far)
		w.ok(after.Call(func() {
			if !copied {
				t.Errorf("stream of device %d: the result was overwritten before it was there", i)
			}
		}))
		w.ok(acc.End())
		release()
		arrives(t, check)
		w.wait(after)
	}
}

func TestAScopeKeepsItsFirstErrorAndStillPublishesWhatWentWell(t *testing.T) {
	w := newWorld(t, options{})
	s, good, gone := w.streams(2), w.new(64), w.new(64)
	defer w.free(good)
	w.free(gone)
	release := w.stall(s[0])
	acc := buffer.Begin(s[0])
	acc.Write(good)
	if p := acc.Read(gone); p != 0 {
		t.Errorf("a freed buffer answers %#x", p)
	}
	first := acc.Err()
	if p := acc.Read(good); p != 0 || acc.Err() != first {
		t.Errorf("after an error a read answers %#x, %v", p, acc.Err())
	}
	worked := false
	w.ok(s[0].Call(func() { worked = true }))
	if err := acc.End(); err != first || !errors.Is(err, weir.ErrClosed) {
		t.Errorf("End answers %v; expected the first error", err)
	}
	if err := acc.End(); err != first {
		t.Errorf("a second End answers %v", err)
	}
	check := w.read(s[1], good, func(buffer.Ptr) {
		if !worked {
			t.Error("the operand's completion was lost")
		}
	})
	release()
	arrives(t, check)
}

func TestASecondEndDoesNothing(t *testing.T) {
	w := newWorld(t, options{})
	s, b := w.lease(w.r), w.new(64)
	defer w.free(b)
	first := buffer.Begin(s)
	first.Write(b)
	w.ok(first.End())
	second := buffer.Begin(s)
	second.Write(b)
	w.ok(first.End())
	if err := b.Free(); !errors.Is(err, weir.ErrBusy) {
		t.Errorf("the second End of one access ended another one: %v", err)
	}
	w.ok(second.End())
	empty := buffer.Begin(s)
	if n := w.count(fault.Any, func() { w.ok(empty.End()) }); n != 0 {
		t.Errorf("a scope of no operands made %d driver calls", n)
	}
}

func TestWhenRecordingFailsEndWaitsForTheWorkAndAnswersTheFailure(t *testing.T) {
	w := newWorld(t, options{})
	s, b := w.streams(2), w.new(64)
	defer w.free(b)
	w.wait(w.r.Reclaim())
	gate, worked := make(chan struct{}), false
	acc := buffer.Begin(s[0])
	acc.Write(b)
	w.ok(s[0].Call(func() { <-gate; worked = true }))
	w.plan.FailNth(fault.StreamRecord, 1, nil)
	w.plan.Delay(fault.StreamSynchronize, sync.OnceFunc(func() { close(gate) })) // the work goes on when End waits
	err := acc.End()
	w.plan.Clear()
	if !worked {
		t.Error("End returned while the work was under way")
	}
	var e *weir.Error
	if !errors.Is(err, fault.ErrInjected) || !errors.As(err, &e) {
		t.Fatalf("End answers %v; expected the failure", err)
	}
	want := weir.Error{Op: "stream.Record", Device: "host:0", Stream: s[0].String(), Name: "INJECTED", Kind: weir.KindCUDA, Err: e.Err}
	if *e != want {
		t.Errorf("the error is\n%#v; expected\n%#v", *e, want)
	}
	// The ledger is true: all is done, so nobody waits, and the buffer works.
	if n := w.count(fault.StreamWait, func() { arrives(t, w.write(s[1], b, nil)) }); n != 0 {
		t.Errorf("the next access made %d driver waits for work that is done", n)
	}
}

func TestWhenRecordingAndWaitingFailTheNextAccessWaitsForTheWholeStream(t *testing.T) {
	w := newWorld(t, options{})
	s, b := w.streams(2), w.new(64)
	defer w.free(b)
	gate, worked := make(chan struct{}), false
	acc := buffer.Begin(s[0])
	acc.Write(b)
	w.ok(s[0].Call(func() { <-gate; worked = true }))
	w.plan.FailNth(fault.StreamRecord, 1, nil)
	w.plan.FailNth(fault.StreamSynchronize, 1, nil)
	if err := acc.End(); !errors.Is(err, fault.ErrInjected) {
		t.Fatalf("End answers %v; expected the failure", err)
	}
	w.plan.Delay(fault.StreamSynchronize, sync.OnceFunc(func() { close(gate) }))
	check := w.write(s[1], b, func(buffer.Ptr) {
		if !worked {
			t.Error("the next write came before the unrecorded work was done")
		}
	})
	w.plan.Clear()
	arrives(t, check)
}

func TestAFailedWaitLeavesTheLedgerAsItWas(t *testing.T) {
	for n := 1; n <= 2; n++ {
		t.Run(fmt.Sprint("wait ", n), func(t *testing.T) {
			w := newWorld(t, options{})
			s, b := w.streams(4), w.new(64)
			defer w.free(b)
			var done [2]bool
			var release [2]func()
			for i := range 2 {
				release[i] = w.stall(s[i])
				w.read(s[i], b, func(buffer.Ptr) { done[i] = true })
			}
			w.plan.FailNth(fault.StreamWait, n, nil)
			acc := buffer.Begin(s[2])
			if p := acc.Write(b); p != 0 || !errors.Is(acc.Err(), fault.ErrInjected) {
				t.Errorf("the failed write answers %#x, %v", p, acc.Err())
			}
			if err := acc.End(); !errors.Is(err, fault.ErrInjected) {
				t.Errorf("End answers %v", err)
			}
			check := w.write(s[3], b, func(buffer.Ptr) {
				if done != [2]bool{true, true} {
					t.Errorf("the next write ran with the readers done: %v", done)
				}
			})
			for i := range release {
				release[i]()
			}
			arrives(t, check)
		})
	}
}

func TestABufferIsNotCollectedWhileAnAccessUsesIt(t *testing.T) {
	w := newWorld(t, options{})
	s := w.lease(w.r)
	acc := buffer.Begin(s)
	for range 8 { // more than an access holds in place
		acc.Write(w.new(64)) // nobody else refers to it
	}
	runtime.Collect()
	if live := w.m.Live(); len(live) != 8 {
		t.Errorf("%d of 8 buffers live on", len(live))
	}
	w.ok(acc.End())
	b := w.new(32)
	w.ok(b.HostWrite(context.Background(), func([]byte) error {
		b = nil
		runtime.Collect()
		return nil
	}))
	runtime.Collect()
	if live := w.m.Live(); len(live) != 0 {
		t.Errorf("after the last access %v live on", live)
	}
}

func TestARefusedFreeLeavesTheBufferToTheCollector(t *testing.T) {
	w := newWorld(t, options{})
	s := w.lease(w.r)
	func() {
		b := w.new(64)
		acc := buffer.Begin(s)
		acc.Read(b)
		if err := b.Free(); !errors.Is(err, weir.ErrBusy) {
			t.Errorf("Free under an open access answers %v", err)
		}
		w.ok(acc.End())
	}()
	runtime.Collect()
	if live := w.m.Live(); len(live) != 0 {
		t.Errorf("it was never freed: %v", live)
	}
}

// TestAnAccessWhoseStreamWasReleasedLeavesATrueLedger: its work may go on.
func TestAnAccessWhoseStreamWasReleasedLeavesATrueLedger(t *testing.T) {
	w := newWorld(t, options{})
	s, b := w.lease(w.r), w.new(64)
	acc := buffer.Begin(s)
	acc.Write(b)
	gate := make(chan struct{})
	written := false
	w.ok(s.Call(func() { <-gate; written = true }))
	w.ok(s.Release())
	if err := acc.End(); !errors.Is(err, weir.ErrStale) {
		t.Errorf("End answers %v; expected ErrStale", err)
	}
	read, seen := make(chan struct{}), false
	go func() {
		defer close(read)
		if err := b.HostRead(context.Background(), func([]byte) error { seen = written; return nil }); err != nil {
			t.Error(err)
		}
	}()
	select {
	case <-read:
		t.Error("the host read what is still being written")
	case <-yielded():
	}
	close(gate)
	<-read
	if !seen {
		t.Error("the host read before the work was done")
	}
	w.free(b)
}

// yielded is closed after others had time to run.
func yielded() <-chan struct{} {
	done := make(chan struct{})
	go func() {
		for range 1000 {
			goruntime.Gosched()
		}
		close(done)
	}()
	return done
}
