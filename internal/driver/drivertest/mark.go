package drivertest

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver"
)

func (f *fixture) newMark(d driver.Device) driver.Mark {
	f.t.Helper()
	m, err := d.NewMark()
	f.ok(err)
	f.afterwards(d, "Mark.Destroy", m.Destroy)
	return m
}

// mark answers a new mark, put on s.
func (f *fixture) mark(d driver.Device, s driver.Stream) driver.Mark {
	f.t.Helper()
	m := f.newMark(d)
	f.ok(s.Mark(m))
	return m
}

// since answers the time from one mark to another; it must not hang.
func (f *fixture) since(to, from driver.Mark) time.Duration {
	f.t.Helper()
	var took time.Duration
	f.within("Mark.Since", func() (err error) {
		took, err = to.Since(from)
		return err
	})
	return took
}

// resolution is how far one reading of a device's clock may be off; its rate is
// the host's to a hundredth.
const resolution = 10 * time.Microsecond

// hold keeps s from going on for some milliseconds, and answers the least that
// it was held.
func (f *fixture) hold(s driver.Stream, behind func()) (held time.Duration) {
	f.t.Helper()
	f.sync("the stream before it is held", s)
	release := f.stall(s)
	behind()
	begun := time.Now()
	for held < 3*time.Millisecond {
		yield()
		held = time.Since(begun)
	}
	release()
	return held
}

var markTests = []test{
	{"marks have the time that the stream took from one to the other", func(f *fixture) {
		d := f.device(0)
		s := f.stream(d)
		begun := time.Now()
		from := f.mark(d, s)
		var to driver.Mark
		held := f.hold(s, func() { to = f.mark(d, s) })
		took := f.since(to, from)
		most := time.Since(begun)
		if took < held-held/100-resolution || took > most+most/100+resolution {
			f.t.Errorf("the stream took %v; expected from %v, for which it was held, to %v, which the test took", took, held, most)
		}
	}},
	{"times between marks add up", func(f *fixture) {
		d := f.device(0)
		s := f.stream(d)
		a := f.mark(d, s)
		var b, c driver.Mark
		f.hold(s, func() { b = f.mark(d, s) })
		f.hold(s, func() { c = f.mark(d, s) })
		first, second, both := f.since(b, a), f.since(c, b), f.since(c, a)
		if off := first + second - both; off.Abs() > resolution || first < 0 || second < 0 {
			f.t.Errorf("%v and %v make %v; expected their sum", first, second, both)
		}
		if back, none := f.since(a, c), f.since(a, a); back != -both || none != 0 {
			f.t.Errorf("back it is %v and to itself %v; expected %v and 0", back, none, -both)
		}
		if again := f.since(c, a); again != both {
			f.t.Errorf("it was %v and is %v now", both, again)
		}
	}},
	{"marks of two streams are on one clock", func(f *fixture) {
		d := f.device(0)
		first, second := f.stream(d), f.stream(d)
		from := f.mark(d, first)
		var to driver.Mark
		held := f.hold(first, func() {
			f.ok(second.Wait(f.record(d, first)))
			to = f.mark(d, second)
		})
		if took := f.since(to, from); took < held-held/100-resolution {
			f.t.Errorf("from one stream to another that waited for it are %v; expected %v or more, for which the first was held", took, held)
		}
	}},
	{"a mark does not wait, Since does", func(f *fixture) {
		d := f.device(0)
		s := f.stream(d)
		from, to := f.newMark(d), f.newMark(d)
		release := f.stall(s)
		f.within("marks on a stalled stream", func() error { return errors.Join(s.Mark(from), s.Mark(to)) })
		var released atomic.Bool
		since := f.startWaiting("Mark.Since", func() error {
			_, err := to.Since(from)
			if !released.Load() {
				return errors.Join(err, errors.New("returned while the stream was stalled"))
			}
			return err
		})
		released.Store(true)
		release()
		f.ok(since.join())
	}},
	{"the latest place of a mark counts, on whatever stream", func(f *fixture) {
		d := f.device(0)
		stalled, s := f.stream(d), f.stream(d)
		m := f.mark(d, s)
		from := f.mark(d, s)
		release := f.stall(stalled)
		f.ok(stalled.Mark(m))
		held := f.hold(s, func() { f.ok(s.Mark(m)) })
		if took := f.since(m, from); took < held-held/100-resolution { // and the stall does not hold it up
			f.t.Errorf("the mark's place is %v after another's; expected its latest, %v or more", took, held)
		}
		release()
	}},
	{"a mark is of one device", func(f *fixture) {
		a, b := f.device(0), f.device(1)
		s, t := f.stream(a), f.stream(b)
		ours, theirs := f.mark(a, s), f.mark(b, t)
		f.refused(s.Mark(theirs), "Stream.Mark", a, weir.ErrArgument)
		f.refused(second(ours.Since(theirs)), "Mark.Since", a, weir.ErrArgument)
	}},
	{"a mark of no family is refused", func(f *fixture) {
		d := f.device(0)
		s := f.stream(d)
		m := f.mark(d, s)
		f.refused(s.Mark(foreignMark{}), "Stream.Mark", d, weir.ErrArgument)
		f.refused(second(m.Since(foreignMark{})), "Mark.Since", d, weir.ErrArgument)
		f.refused(second(m.Since(nil)), "Mark.Since", d, weir.ErrArgument)
		f.since(m, m)
	}},
	{"a mark that was never put has no time", func(f *fixture) {
		d := f.device(0)
		s := f.stream(d)
		put, never := f.mark(d, s), f.newMark(d)
		f.refused(second(put.Since(never)), "Mark.Since", d, weir.ErrArgument)
		f.refused(second(never.Since(put)), "Mark.Since", d, weir.ErrArgument)
		f.ok(s.Mark(never))
		f.since(never, put)
	}},
	{"a destroyed mark is refused", func(f *fixture) {
		d := f.device(0)
		s := f.stream(d)
		m, gone := f.mark(d, s), f.newMark(d)
		release := f.stall(s)
		f.ok(s.Mark(gone))
		f.within("Destroy of a pending mark", gone.Destroy)
		f.ok(gone.Destroy())
		f.refused(s.Mark(gone), "Stream.Mark", d, weir.ErrClosed)
		f.refused(second(m.Since(gone)), "Mark.Since", d, weir.ErrClosed)
		f.refused(second(gone.Since(m)), "Mark.Since", d, weir.ErrClosed)
		release()
		f.sync("the stream", s)
	}},
	{"a destroyed stream takes no mark, and keeps its own", func(f *fixture) {
		d := f.device(0)
		s := f.stream(d)
		from, to := f.mark(d, s), f.mark(d, s)
		f.ok(s.Destroy())
		f.refused(s.Mark(to), "Stream.Mark", d, weir.ErrClosed)
		if took := f.since(to, from); took < 0 {
			f.t.Errorf("the stream took %v", took)
		}
	}},
}

// markDeathTests stand with the tests of death.
var markDeathTests = []test{
	{"a dead device's marks answer the first cause and hold nobody", func(f *fixture) {
		m := f.mourning()
		d, s := m.device, m.stream
		from, to := f.mark(d, s), f.mark(d, s)
		since := f.startWaiting("Mark.Since", func() error { return second(to.Since(from)) })
		cause := f.kill(d)
		f.lost("Mark.Since while the device dies", since.join(), cause)
		for call, again := range map[string]func() error{
			"Device.NewMark": func() error { return second(d.NewMark()) },
			"Stream.Mark":    func() error { return s.Mark(from) },
			"Mark.Since":     func() error { return second(to.Since(from)) },
		} {
			err := f.start(call+" of a dead device", again).join()
			f.lost(call, err, cause)
			f.refused(err, call, d, weir.ErrDeviceLost)
		}
		f.proper(f.start("Mark.Destroy of a dead device", to.Destroy).join(), "Mark.Destroy", d, weir.ErrDeviceLost)
	}},
}

// foreignMark is a mark of no family that is known. Only its type is looked at.
type foreignMark struct{ driver.Mark }
