package buffer_test

import (
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/internal/driver/fault"
)

func TestPartsLieWhereTheirRangesSay(t *testing.T) {
	w := newWorld(t, options{})
	for _, bytes := range []int64{1000, 2 << 20} {
		b := w.new(bytes)
		base := buffer.Address(b)
		ranges := []buffer.Range{{Offset: 0, Bytes: 100}, {Offset: 100, Bytes: 1}, {Offset: 500, Bytes: bytes - 500}}
		parts := must(b.Partition(ranges...))
		if len(parts) != len(ranges) {
			t.Fatalf("%d parts; expected %d", len(parts), len(ranges))
		}
		for i, p := range parts {
			if buffer.Address(p) != base+buffer.Ptr(ranges[i].Offset) || p.Bytes() != ranges[i].Bytes || p.Memory() != w.m {
				t.Errorf("part %d has %d bytes at +%d", i, p.Bytes(), buffer.Address(p)-base)
			}
		}
		again := must(parts[2].Partition(buffer.Range{Offset: 10, Bytes: 20}))
		if got := buffer.Address(again[0]); got != base+510 {
			t.Errorf("a part of a part is at +%d; expected +510", got-base)
		}
		w.free(parts[0], parts[1], again[0])
	}
}

func TestAPartitionRefusesRangesThatAreNotOrderedDisjointAndInside(t *testing.T) {
	w := newWorld(t, options{})
	b := w.new(100)
	defer w.free(b)
	type r = buffer.Range
	for _, c := range []struct {
		ranges []r
		want   string
	}{
		{nil, "no ranges; expected at least one"},
		{[]r{{0, 0}}, "range 0 is 0 bytes at 0; expected a positive size, from 0 on, inside 100 bytes"},
		{[]r{{0, -1}}, "range 0 is -1 bytes at 0; expected a positive size, from 0 on, inside 100 bytes"},
		{[]r{{-1, 5}}, "range 0 is 5 bytes at -1; expected a positive size, from 0 on, inside 100 bytes"},
		{[]r{{0, 101}}, "range 0 is 101 bytes at 0; expected a positive size, from 0 on, inside 100 bytes"},
		{[]r{{100, 1}}, "range 0 is 1 bytes at 100; expected a positive size, from 0 on, inside 100 bytes"},
		{[]r{{math.MaxInt64, 1}}, "range 0 is 1 bytes at 9223372036854775807; expected a positive size, from 0 on, inside 100 bytes"},
		{[]r{{1, math.MaxInt64}}, "range 0 is 9223372036854775807 bytes at 1; expected a positive size, from 0 on, inside 100 bytes"},
		{[]r{{0, 50}, {49, 10}}, "range 1 is 10 bytes at 49; expected a positive size, from 50 on, inside 100 bytes"},
		{[]r{{50, 10}, {0, 10}}, "range 1 is 10 bytes at 0; expected a positive size, from 60 on, inside 100 bytes"},
	} {
		parts, err := b.Partition(c.ranges...)
		refuses(t, err, weir.ErrArgument, "buffer.Partition: %s", c.want)
		if parts != nil {
			t.Error("it answers parts too")
		}
	}
	if s := w.m.Stats(); b.Bytes() != 100 || s.Buffers != 1 || s.Used != 100 {
		t.Errorf("after the refusals the buffer has %d bytes, and %+v", b.Bytes(), s)
	}
}

func TestAPartitionConsumesItsParent(t *testing.T) {
	w := newWorld(t, options{})
	s := w.lease(w.r)
	b := w.new(100)
	parts := must(b.Partition(buffer.Range{Bytes: 50}, buffer.Range{Offset: 50, Bytes: 50}))
	if b.Live() || b.Bytes() != 0 {
		t.Error("the parent still lives")
	}
	acc := buffer.Begin(s)
	acc.Read(b)
	refuses(t, acc.End(), weir.ErrClosed, "buffer.Read on host:0: the buffer was freed or partitioned; expected a live one")
	_, err := b.Partition(buffer.Range{Bytes: 1})
	refuses(t, err, weir.ErrClosed, "buffer.Partition on host:0: the buffer was freed or partitioned; expected a live one")
	w.free(b)
	if !parts[0].Live() || !parts[1].Live() {
		t.Error("freeing the consumed parent freed a part")
	}
	w.free(parts...)
}

func TestPartsInheritTheLedgerAndThenHaveTheirOwn(t *testing.T) {
	w := newWorld(t, options{})
	s := w.streams(4)
	b := w.new(128)
	released := w.stall(s[0])
	before := 0
	w.write(s[0], b, func(buffer.Ptr) { before = 1 })
	parts := must(b.Partition(buffer.Range{Bytes: 64}, buffer.Range{Offset: 64, Bytes: 64}))
	defer w.free(parts...)
	var seen [2]int
	reads := []<-chan struct{}{
		w.read(s[1], parts[0], func(buffer.Ptr) { seen[0] = before }),
		w.read(s[2], parts[1], func(buffer.Ptr) { seen[1] = before }),
	}
	if happened(reads[0]) || happened(reads[1]) {
		t.Error("a part was read before its parent was written")
	}
	released()
	for i, r := range reads {
		arrives(t, r)
		if seen[i] != 1 {
			t.Errorf("part %d was read before its parent was written", i)
		}
	}
	// From now on they do not know of each other.
	w.stall(s[1])
	stalled := w.write(s[1], parts[0], nil)
	arrives(t, w.write(s[3], parts[1], nil))
	if happened(stalled) {
		t.Error("a stalled write ran")
	}
	acc := buffer.Begin(s[3])
	acc.Write(parts[0])
	acc.Write(parts[1]) // no conflict
	w.ok(acc.End())
}

func TestTheMemoryIsFreedWithTheLastPartAfterItsUsers(t *testing.T) {
	w := newWorld(t, options{})
	s := w.streams(2)
	parts := must(w.new(3<<20).Partition(buffer.Range{Bytes: 1 << 20}, buffer.Range{Offset: 1 << 20, Bytes: 1 << 20}))
	base := buffer.Address(parts[0])
	release := w.stall(s[0])
	done := false
	w.read(s[0], parts[0], func(buffer.Ptr) { done = true })
	if n := w.count(fault.PoolFree, func() { w.free(parts[0]) }); n != 0 {
		t.Error("the first part's end freed the memory")
	}
	if n := w.count(fault.PoolFree, func() { w.free(parts[1]) }); n != 1 {
		t.Errorf("the last part's end made %d frees; expected 1", n)
	}
	next := w.new(3 << 20) // the pool would give the same block again if it were free
	check := w.write(s[1], next, func(p buffer.Ptr) {
		if p == base && !done {
			t.Error("the next owner came before the first part's reader was done")
		}
	})
	release()
	arrives(t, check)
	w.free(next)
}

// The model: what is used is the sum of the live buffers' sizes, however they
// were cut.
func TestPartsAreCountedAsWhatTheyAre(t *testing.T) {
	w := newWorld(t, options{})
	rapid.Check(t, func(t *rapid.T) {
		live := []*buffer.Buffer{w.new(rapid.Int64Range(1, 2<<20).Draw(t, "bytes"))}
		used := live[0].Bytes()
		defer func() { w.free(live...) }()
		t.Repeat(map[string]func(*rapid.T){
			"cut": func(t *rapid.T) {
				if len(live) == 0 {
					return
				}
				i := rapid.IntRange(0, len(live)-1).Draw(t, "which")
				b := live[i]
				var ranges []buffer.Range
				for at := int64(0); at < b.Bytes() && len(ranges) < 3; {
					r := buffer.Range{Offset: at + rapid.Int64Range(0, b.Bytes()-at-1).Draw(t, "gap")}
					r.Bytes = rapid.Int64Range(1, b.Bytes()-r.Offset).Draw(t, "part")
					ranges = append(ranges, r)
					at = r.Offset + r.Bytes
				}
				used -= b.Bytes()
				live = append(append(live[:i], live[i+1:]...), must(b.Partition(ranges...))...)
				for _, r := range ranges {
					used += r.Bytes
				}
			},
			"free": func(t *rapid.T) {
				if len(live) > 0 {
					used -= live[0].Bytes()
					w.free(live[0])
					live = live[1:]
				}
			},
			"": func(t *rapid.T) {
				if s := w.m.Stats(); s.Used != used || s.Buffers != int64(len(live)) {
					t.Fatalf("got %+v; expected %d bytes in %d buffers", s, used, len(live))
				}
			},
		})
	})
}

func TestAPartitionUnderAnAccessIsRefusedAndOneAfterItIsNot(t *testing.T) {
	w := newWorld(t, options{})
	s, b := w.lease(w.r), w.new(64)
	acc := buffer.Begin(s)
	acc.Read(b)
	if _, err := b.Partition(buffer.Range{Bytes: 64}); !errors.Is(err, weir.ErrBusy) {
		t.Errorf("got %v; expected ErrBusy", err)
	}
	w.ok(acc.End())
	w.free(must(b.Partition(buffer.Range{Bytes: 64}))...)
}
