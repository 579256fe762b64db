package drivertest

import (
	"errors"
	"fmt"
	goruntime "runtime"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver"
)

var deviceTests = []test{
	{"a family has a name and counts its devices", func(f *fixture) {
		if f.family.Name() == "" {
			f.t.Errorf("the family has no name")
		}
		if n, why := f.family.Count(), f.family.Unavailable(); (n == 0) != (why != nil) {
			f.t.Errorf("Count is %d and Unavailable %v; expected a reason just when there is no device", n, why)
		}
	}},
	{"Open answers the same device every time", func(f *fixture) {
		for i := range f.family.Count() {
			a, b := f.device(i), f.device(i)
			if a != b {
				f.t.Errorf("two Opens of %d answered different devices", i)
			}
			if want := fmt.Sprintf("%s:%d", f.family.Name(), i); a.Name() != want || a.Ordinal() != i {
				f.t.Errorf("device %d is %q with ordinal %d; expected %q", i, a.Name(), a.Ordinal(), want)
			}
			if a.Err() != nil {
				f.t.Errorf("a fresh device is dead: %v", a.Err())
			}
		}
	}},
	{"Open refuses an ordinal that is not there", func(f *fixture) {
		for _, ordinal := range []int{-1, f.family.Count()} {
			f.refused(second(f.family.Open(ordinal)), "Family.Open", nil, weir.ErrNoDevice)
		}
	}},
	{"capabilities are a snapshot with sane values", func(f *fixture) {
		d := f.device(0)
		c := d.Capabilities()
		if c == nil || c != d.Capabilities() {
			f.t.Fatalf("Capabilities answered %p, then %p; expected one snapshot", c, d.Capabilities())
		}
		if c.Name == "" || c.MemoryBytes <= 0 || c.Multiprocessors <= 0 || c.PriorityGreatest > c.PriorityLeast {
			f.t.Errorf("capabilities are %+v; expected a name, memory, processors and a range of priorities", *c)
		}
	}},
	{"free memory lies between nothing and the total", func(f *fixture) {
		free, total, err := f.device(0).Memory()
		f.ok(err)
		if free < 0 || free > total || total <= 0 {
			f.t.Errorf("Memory is %d free of %d", free, total)
		}
	}},
	{"Select nests and restores", func(f *fixture) {
		goruntime.LockOSThread()
		defer goruntime.UnlockOSThread()
		outer, err := f.device(0).Select()
		f.ok(err)
		inner, err := f.device(f.family.Count() - 1).Select()
		f.ok(err)
		inner()
		outer()
	}},
	{"streams have every priority of the range and no other", func(f *fixture) {
		d := f.device(0)
		c := d.Capabilities()
		for p := c.PriorityGreatest; p <= c.PriorityLeast; p++ {
			s, err := d.NewStream(p)
			f.ok(err)
			f.sync("a stream", s)
			f.ok(s.Destroy())
		}
		f.refused(second(d.NewStream(c.PriorityLeast+1)), "Device.NewStream", d, weir.ErrArgument)
		f.refused(second(d.NewStream(c.PriorityGreatest-1)), "Device.NewStream", d, weir.ErrArgument)
	}},
	{"pools are there as the capabilities say", func(f *fixture) {
		d := f.device(0)
		if d.Capabilities().StreamOrderedPools {
			f.pool(d, driver.PoolConfig{})
			return
		}
		f.refused(second(d.NewPool(driver.PoolConfig{})), "Device.NewPool", d, weir.ErrNotSupported)
	}},
	{"creations from several goroutines are independent", func(f *fixture) {
		d := f.device(0)
		var tasks []*task
		for range 4 {
			tasks = append(tasks, f.start("a goroutine that makes streams", func() error {
				for range 8 {
					s, err := d.NewStream(0)
					if err != nil {
						return err
					}
					e, err := d.NewEvent()
					if err != nil {
						return err
					}
					if err := errors.Join(s.Record(e), e.Synchronize(), e.Destroy(), s.Destroy()); err != nil {
						return err
					}
				}
				return nil
			}))
		}
		f.all(tasks)
	}},
}
