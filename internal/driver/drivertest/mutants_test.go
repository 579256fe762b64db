package drivertest

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/hostmem"
)

// mutant is the host family with one mistake in it. caught names tests of the
// suite that must fail for it.
type mutant struct {
	caught []string
	device func(d *mutantDevice)
	stream func(s *mutantStream)
	pool   func(p *mutantPool, c *driver.PoolConfig)
	gemm   func(g *driver.Gemm)
	groups func(groups []driver.GemmGroup) // a copy, with the caller's addresses
	late   bool                            // groups are read when they run
	svd    func(h driver.Solver, s *mutantStream, p *driver.SVD) error
}

var mutants = map[string]mutant{
	"waits are ignored": {
		caught: []string{"Order/a_wait_holds_a_stream_until_the_event_is_done", "Order/random_programs_compute_what_a_sequential_one_does",
			"Order/a_wait_works_across_devices", "Order/a_diamond_joins_both_its_sides"},
		stream: func(s *mutantStream) { s.wait = func(driver.Event) error { return nil } },
	},
	"waits for another device are ignored": {
		caught: []string{"Order/a_wait_works_across_devices", "Order/random_programs_compute_what_a_sequential_one_does"},
		stream: func(s *mutantStream) {
			s.wait = func(e driver.Event) error {
				if m, ok := e.(mutantEvent); ok && m.device != s.device {
					return nil
				}
				return s.Stream.Wait(innerEvent(e))
			}
		},
	},
	"a wait looks at the event when it runs": {
		caught: []string{"Order/a_wait_captures_the_record_of_its_time", "Order/a_wait_for_a_finished_record_ignores_a_later_one"},
		stream: func(s *mutantStream) {
			s.wait = func(e driver.Event) error {
				return s.Stream.Call(func() { _ = innerEvent(e).Synchronize() })
			}
		},
	},
	"a wait blocks the caller": {
		caught: []string{"Stream/no_submission_waits_for_a_stalled_stream"},
		stream: func(s *mutantStream) {
			s.wait = func(e driver.Event) error { return innerEvent(e).Synchronize() }
		},
	},
	"all streams are one": {
		caught: []string{"Stream/a_stalled_stream_does_not_hold_another"},
		device: func(d *mutantDevice) {
			var one driver.Stream
			d.newStream = func() (driver.Stream, error) {
				if one != nil {
					return one, nil
				}
				s, err := d.Device.NewStream(0)
				one = s
				return s, err
			}
		},
	},
	"CopyIn keeps its slice": {
		caught: []string{"Stream/CopyIn's_slice_may_be_reused_at_once"},
		stream: func(s *mutantStream) {
			s.copyIn = func(dst driver.Ptr, src []byte) error {
				return s.Stream.Call(func() { copy(hostmem.Bytes(uintptr(dst), int64(len(src))), src) })
			}
		},
	},
	"CopyOut does not wait": {
		caught: []string{"Stream/CopyOut_waits_for_the_earlier_work_of_its_stream"},
		stream: func(s *mutantStream) {
			s.copyOut = func(dst []byte, src driver.Ptr) error {
				copy(dst, hostmem.Bytes(uintptr(src), int64(len(dst))))
				return nil
			}
		},
	},
	"Record does nothing": {
		caught: []string{"Event/Record_captures_the_work_before_it"},
		stream: func(s *mutantStream) { s.record = func(driver.Event) error { return nil } },
	},
	"a mark has the time of its call": {
		caught: []string{"Mark/marks_have_the_time_that_the_stream_took_from_one_to_the_other", "Mark/a_mark_does_not_wait,_Since_does"},
		stream: func(s *mutantStream) {
			idle, err := s.device.Device.NewStream(0)
			s.mark = func(m driver.Mark) error { return errors.Join(err, idle.Mark(m)) }
		},
	},
	"a mark stays at its first place": {
		caught: []string{"Mark/the_latest_place_of_a_mark_counts,_on_whatever_stream"},
		stream: func(s *mutantStream) {
			s.mark = func(m driver.Mark) error {
				if _, err := m.Since(m); err == nil {
					return nil
				}
				return s.Stream.Mark(m)
			}
		},
	},
	"a notification comes twice": {
		caught: []string{"Notify/many_notifications_come_once_each"},
		stream: func(s *mutantStream) {
			s.notify = func(w driver.Waker) error { return errors.Join(s.Stream.Notify(w), s.Stream.Notify(w)) }
		},
	},
	"a notification comes at once": {
		caught: []string{"Notify/a_waker_is_woken_once,_after_the_earlier_work"},
		stream: func(s *mutantStream) {
			s.notify = func(w driver.Waker) error {
				done := make(chan struct{})
				go func() { w.Wake(nil); close(done) }()
				<-done
				return nil
			}
		},
	},
	"a waker runs on the caller's goroutine": {
		caught: []string{"Notify/Notify_does_not_wake_on_the_caller's_goroutine"},
		stream: func(s *mutantStream) {
			s.notify = func(w driver.Waker) error {
				if done, err := s.Stream.Query(); err != nil || !done {
					return errors.Join(err, s.Stream.Notify(w))
				}
				w.Wake(nil)
				return nil
			}
		},
	},
	"a pool's free is not ordered": {
		caught: []string{"Pool/another_stream_gets_the_memory_only_when_its_free_is_done", "Pool/memory_whose_free_is_unfinished_is_not_shared"},
		pool: func(p *mutantPool, _ *driver.PoolConfig) {
			p.free = func(_ driver.Stream, at driver.Ptr) error {
				idle, err := p.device.NewStream(0)
				if err != nil {
					return err
				}
				return errors.Join(p.Pool.Free(idle, at), idle.Synchronize(), idle.Destroy())
			}
		},
	},
	"a pool waits before it reuses": {
		caught: []string{"Pool/the_stream_of_a_free_reuses_the_memory_at_once"},
		pool: func(p *mutantPool, _ *driver.PoolConfig) {
			p.free = func(s driver.Stream, at driver.Ptr) error {
				return errors.Join(s.Synchronize(), p.Pool.Free(innerStream(s), at))
			}
		},
	},
	"a pool forgets its limit": {
		caught: []string{"Pool/the_limit_is_kept_and_named"},
		pool:   func(_ *mutantPool, c *driver.PoolConfig) { c.Limit = 0 },
	},
	"a pool takes every pointer": {
		caught: []string{"Pool/a_pool's_memory_is_freed_once_and_on_its_own_device"},
		pool: func(p *mutantPool, _ *driver.PoolConfig) {
			p.free = func(s driver.Stream, at driver.Ptr) error {
				_ = p.Pool.Free(innerStream(s), at)
				return nil
			}
		},
	},
	"kernels do not conjugate": {
		caught: []string{"Kernel/mul_of_complex64", "Kernel/copy_of_complex128_to_complex64"},
		stream: func(s *mutantStream) {
			s.launch = func(k driver.Kernel) error {
				k.ConjA, k.ConjB = false, false
				return s.Stream.Launch(&k)
			}
		},
	},
	"fill writes a gap too": {
		caught: []string{"Kernel/fill_of_float32"},
		stream: func(s *mutantStream) {
			s.launch = func(k driver.Kernel) error {
				err := s.Stream.Launch(&k)
				if k.Op == driver.KernelFill && len(k.Out.Shape) == 1 && k.Out.Shape[0] > 1 && k.Out.Strides[0] == 2 {
					k.Out = driver.View{Ptr: k.Out.Ptr + driver.Ptr(k.Out.DType.Size()), DType: k.Out.DType}
					err = errors.Join(err, s.Stream.Launch(&k))
				}
				return err
			}
		},
	},
	"products do not conjugate": {
		caught: []string{"Gemm/products_of_complex128", "Gemm/groups_of_complex128"},
		gemm: func(g *driver.Gemm) {
			if g.OpA == driver.ConjTrans {
				g.OpA = driver.Trans
			}
		},
	},
	"products read a C that beta 0 hides": {
		caught: []string{"Gemm/products_of_float32", "Gemm/groups_of_bfloat16"},
		gemm: func(g *driver.Gemm) {
			if g.Beta == 0 {
				g.Beta = 1
			}
		},
	},
	"members of a group step evenly": {
		caught: []string{"Gemm/groups_of_float64", "Gemm/groups_of_int32"},
		groups: func(groups []driver.GemmGroup) {
			for i := range groups {
				for _, at := range []*[]driver.Ptr{&groups[i].As, &groups[i].Bs, &groups[i].Cs} {
					*at = slices.Clone(*at)
					for k := 2; k < len(*at); k++ {
						(*at)[k] = (*at)[k-1] + (*at)[1] - (*at)[0]
					}
				}
			}
		},
	},
	"a call takes 8192 products": {
		caught: []string{"Gemm/more_products_than_a_launch_takes"},
		groups: func(groups []driver.GemmGroup) {
			for i := range groups {
				g := &groups[i]
				n := min(len(g.Cs), 8192)
				g.As, g.Bs, g.Cs = g.As[:n], g.Bs[:n], g.Cs[:n]
			}
		},
	},
	"groups are read when they run": {
		caught: []string{"Gemm/groups_are_captured"},
		late:   true,
	},
	"a decomposition does not wait for its stream": {
		caught: []string{"SVD/a_decomposition_is_submitted_in_the_order_of_its_stream"},
		svd: func(h driver.Solver, s *mutantStream, p *driver.SVD) error {
			idle, err := s.device.Device.NewStream(0)
			return errors.Join(err, h.SVD(idle, p), idle.Synchronize())
		},
	},
	"a decomposition reads its description when it runs": {
		caught: []string{"SVD/a_decomposition_captures_its_description"},
		svd: func(h driver.Solver, s *mutantStream, p *driver.SVD) error {
			idle, err := s.device.Device.NewStream(0)
			return errors.Join(err, s.Stream.Call(func() { _ = errors.Join(h.SVD(idle, p), idle.Synchronize()) }))
		},
	},
	"full factors are thin": {
		caught: []string{"SVD/decompositions_of_complex64"},
		svd: func(h driver.Solver, s *mutantStream, p *driver.SVD) error {
			thin := *p
			thin.Factors = min(p.Factors, driver.FactorsThin)
			return h.SVD(s.Stream, &thin)
		},
	},
	"singular values come from small to large": {
		caught: []string{"SVD/decompositions_of_float64"},
		svd: func(h driver.Solver, s *mutantStream, p *driver.SVD) error {
			q := *p
			return errors.Join(h.SVD(s.Stream, p), s.Stream.Call(func() {
				if q.DType == dtype.Float64 {
					slices.Reverse(hostmem.Slice[float64](uintptr(q.S), min(q.M, q.N)))
				}
			}))
		},
	},
	"a decomposition writes between U's columns": {
		caught: []string{"SVD/decompositions_of_float32"},
		svd: func(h driver.Solver, s *mutantStream, p *driver.SVD) error {
			q := *p
			return errors.Join(h.SVD(s.Stream, p), s.Stream.Call(func() {
				if q.DType == dtype.Float32 && q.Factors != driver.FactorsNone && q.LDU > q.M && min(q.M, q.N) > 0 {
					hostmem.Slice[float32](uintptr(q.U), q.LDU)[q.M] = 0
				}
			}))
		},
	},
	"a decomposition of what is not finite has finite factors": {
		caught: []string{"SVD/NaN_and_infinity_of_complex128_make_all_results_NaN"},
		svd: func(h driver.Solver, s *mutantStream, p *driver.SVD) error {
			q := *p
			return errors.Join(h.SVD(s.Stream, p), s.Stream.Call(func() {
				if q.DType == dtype.Complex128 && q.Factors != driver.FactorsNone {
					hostmem.Slice[complex128](uintptr(q.VH), 1)[0] = 1
				}
			}))
		},
	},
	"errors have no type": {
		caught: []string{"Memory/sizes_that_are_not_positive_are_refused"},
		device: func(d *mutantDevice) {
			d.alloc = func(n int64) (driver.Ptr, error) {
				p, err := d.Device.Alloc(n)
				if err != nil {
					return 0, fmt.Errorf("alloc: %w", err)
				}
				return p, nil
			}
		},
	},
	"death has no cause": {
		caught: []string{"Death/every_call_of_a_dead_device_answers_the_first_cause"},
		device: func(d *mutantDevice) {
			d.err = func() error {
				if d.Device.Err() == nil {
					return nil
				}
				return &weir.Error{Op: "Device.Err", Device: d.Name(), Err: weir.ErrDeviceLost}
			}
		},
	},
}

// mutantFamily wraps the host family and applies one mutant's hooks.
type mutantFamily struct {
	driver.Family
	m       mutant
	mu      sync.Mutex // guards devices
	devices map[int]*mutantDevice
}

func (f *mutantFamily) Open(ordinal int) (driver.Device, error) {
	d, err := f.Family.Open(ordinal)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if m := f.devices[ordinal]; m != nil {
		return m, nil
	}
	m := &mutantDevice{Device: d, m: f.m}
	if f.m.device != nil {
		f.m.device(m)
	}
	f.devices[ordinal] = m
	return m, nil
}

type mutantDevice struct {
	driver.Device
	m         mutant
	newStream func() (driver.Stream, error)
	alloc     func(n int64) (driver.Ptr, error)
	err       func() error
}

func (d *mutantDevice) Kill(cause error) { d.Device.(interface{ Kill(error) }).Kill(cause) }

func (d *mutantDevice) Err() error {
	if d.err != nil {
		return d.err()
	}
	return d.Device.Err()
}

func (d *mutantDevice) Alloc(n int64) (driver.Ptr, error) {
	if d.alloc != nil {
		return d.alloc(n)
	}
	return d.Device.Alloc(n)
}

func (d *mutantDevice) NewStream(priority int) (driver.Stream, error) {
	if d.newStream != nil {
		return d.newStream()
	}
	s, err := d.Device.NewStream(priority)
	if err != nil {
		return nil, err
	}
	m := &mutantStream{Stream: s, device: d}
	if d.m.stream != nil {
		d.m.stream(m)
	}
	return m, nil
}

func (d *mutantDevice) NewEvent() (driver.Event, error) {
	e, err := d.Device.NewEvent()
	if err != nil {
		return nil, err
	}
	return mutantEvent{e, d}, nil
}

func (d *mutantDevice) NewPool(c driver.PoolConfig) (driver.Pool, error) {
	p := &mutantPool{device: d}
	if d.m.pool != nil {
		d.m.pool(p, &c)
	}
	inner, err := d.Device.NewPool(c)
	if err != nil {
		return nil, err
	}
	p.Pool = inner
	return p, nil
}

func (d *mutantDevice) NewBLAS() (driver.BLAS, error) {
	b, err := d.Device.NewBLAS()
	if err != nil {
		return nil, err
	}
	return mutantBLAS{b, d}, nil
}

func (d *mutantDevice) NewSolver() (driver.Solver, error) {
	h, err := d.Device.NewSolver()
	if err != nil {
		return nil, err
	}
	return mutantSolver{h, d.m.svd}, nil
}

// mutantStream makes the calls that a hook is set for through the hook.
type mutantStream struct {
	driver.Stream
	device  *mutantDevice
	wait    func(e driver.Event) error
	record  func(e driver.Event) error
	mark    func(m driver.Mark) error
	notify  func(w driver.Waker) error
	copyIn  func(dst driver.Ptr, src []byte) error
	copyOut func(dst []byte, src driver.Ptr) error
	launch  func(k driver.Kernel) error
}

func (s *mutantStream) Wait(e driver.Event) error {
	if s.wait != nil {
		return s.wait(e)
	}
	return s.Stream.Wait(innerEvent(e))
}

func (s *mutantStream) Record(e driver.Event) error {
	if s.record != nil {
		return s.record(e)
	}
	return s.Stream.Record(innerEvent(e))
}

func (s *mutantStream) Mark(m driver.Mark) error {
	if s.mark != nil {
		return s.mark(m)
	}
	return s.Stream.Mark(m)
}

func (s *mutantStream) Notify(w driver.Waker) error {
	if s.notify != nil {
		return s.notify(w)
	}
	return s.Stream.Notify(w)
}

func (s *mutantStream) CopyIn(dst driver.Ptr, src []byte) error {
	if s.copyIn != nil {
		return s.copyIn(dst, src)
	}
	return s.Stream.CopyIn(dst, src)
}

func (s *mutantStream) CopyOut(dst []byte, src driver.Ptr) error {
	if s.copyOut != nil {
		return s.copyOut(dst, src)
	}
	return s.Stream.CopyOut(dst, src)
}

func (s *mutantStream) Launch(k *driver.Kernel) error {
	if s.launch != nil {
		return s.launch(*k)
	}
	return s.Stream.Launch(k)
}

type mutantEvent struct {
	driver.Event
	device *mutantDevice
}

type mutantPool struct {
	driver.Pool
	device *mutantDevice
	free   func(s driver.Stream, at driver.Ptr) error
}

func (p *mutantPool) Alloc(s driver.Stream, bytes int64) (driver.Ptr, error) {
	return p.Pool.Alloc(innerStream(s), bytes)
}

func (p *mutantPool) Free(s driver.Stream, at driver.Ptr) error {
	if p.free != nil {
		return p.free(innerStream(s), at)
	}
	return p.Pool.Free(innerStream(s), at)
}

type mutantBLAS struct {
	driver.BLAS
	device *mutantDevice
}

func (b mutantBLAS) Gemm(s driver.Stream, g *driver.Gemm) error {
	spoiled := *g
	if spoil := b.device.m.gemm; spoil != nil {
		spoil(&spoiled)
	}
	return b.BLAS.Gemm(innerStream(s), &spoiled)
}

func (b mutantBLAS) GemmGroups(s driver.Stream, groups []driver.GemmGroup) error {
	m := b.device.m
	if m.late {
		idle, err := b.device.Device.NewStream(0)
		if err != nil {
			return err
		}
		return s.Call(func() { _ = errors.Join(b.BLAS.GemmGroups(idle, groups), idle.Synchronize(), idle.Destroy()) })
	}
	spoiled := slices.Clone(groups)
	if m.groups != nil {
		m.groups(spoiled)
	}
	for i := range spoiled {
		if m.gemm != nil {
			m.gemm(&spoiled[i].Gemm)
		}
	}
	return b.BLAS.GemmGroups(innerStream(s), spoiled)
}

type mutantSolver struct {
	driver.Solver
	svd func(h driver.Solver, s *mutantStream, p *driver.SVD) error
}

func (h mutantSolver) SVD(s driver.Stream, p *driver.SVD) error {
	if m, ok := s.(*mutantStream); ok && h.svd != nil {
		return h.svd(h.Solver, m, p)
	}
	return h.Solver.SVD(innerStream(s), p)
}

func innerStream(s driver.Stream) driver.Stream {
	if m, ok := s.(*mutantStream); ok {
		return m.Stream
	}
	return s
}

func innerEvent(e driver.Event) driver.Event {
	if m, ok := e.(mutantEvent); ok {
		return m.Event
	}
	return e
}
