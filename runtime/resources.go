package runtime

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/stream"
)

// ResourceOptions configures the resources of one device.
type ResourceOptions struct {
	Streams          int   // stream count; 0 is stream.DefaultCount
	StreamPriority   int   // of the device's range
	MemoryLimit      int64 // most bytes held of the device; 0 is what the device has
	ReleaseThreshold int64 // unused bytes kept when the device synchronises; 0 is an eighth of its memory, -1 none
	Debug            bool  // remember creation stacks
	// ExitWait is how long Close waits for jobs of native libraries that still run,
	// which nothing can stop; 0 is DefaultExitWait, and a negative one has no end.
	ExitWait time.Duration
	Lowering Lowering
}

// DefaultExitWait is the ResourceOptions.ExitWait if nothing says otherwise.
const DefaultExitWait = 10 * time.Second

// Lowering says how operations of tensor/flow become launches.
type Lowering struct {
	// Separate has every operation be a launch of its own. Otherwise products that
	// need nothing of each other may share one.
	Separate bool
	// MostTogether is how many operations share a launch at most; 0 is 1024 on a GPU
	// and 64 on a host device.
	MostTogether int
	// Reproducible has a program compute the same bits in every run on the same device
	// with the same libraries. Which operations share a launch depends on when they
	// were asked for, and a library may round a product in a batch otherwise than
	// one by itself; so each has its own.
	Reproducible bool
}

// Resources is all that one device offers. Applications use the installed
// ones (For); tests and low-level code may build their own.
type Resources struct {
	dev     Device
	options ResourceOptions
	streams *stream.Pool
	own     *stream.Pool // of the two below
	reclaim stream.Stream
	supply  stream.Stream

	services atomic.Pointer[[]*service] // few; replaced, never changed
	mu       sync.Mutex                 // guards replacing services and closed; nothing is made under it
	closed   bool
}

// Stage says when a service is closed. Every service, of any stage, is drained
// first, and then the operations' streams are waited for.
type Stage int

const (
	// StageProvider: library handles. They are closed once all streams have
	// drained, while the streams and the memory that they use still exist.
	StageProvider Stage = iota
	// StageMemory: what providers may hold a part of. It is closed after every
	// provider and before the streams are destroyed, on which it gives its
	// memory back.
	StageMemory
	// StageLog: operations that wait to be launched. They are drained as soon as
	// tasks have ended, while launching is still possible, and need no closing.
	StageLog
	// StageSession: sessions of native libraries. They are drained when the logs are,
	// where jobs that run are waited for, and closed before the first provider.
	StageSession
)

// Service is something that Resources makes once, on first use, and takes down
// at Close.
type Service interface {
	// Drain refuses new use and wakes whoever waits, with ErrClosed.
	Drain() error
	// Close gives everything back; all device work is done by then.
	Close() error
	// Live lists what others still hold of it.
	Live() []Leak
}

// Leak is one thing that is still held.
type Leak struct {
	Kind   string // "buffer", "stream", "cublas handle"
	Name   string
	Bytes  int64
	Device string
	Stack  string // where it was made, in debug mode
}

func (l Leak) String() string {
	s := l.Kind
	if l.Name != "" {
		s += " " + l.Name
	}
	if l.Bytes > 0 {
		s += fmt.Sprintf(" of %d bytes", l.Bytes)
	}
	return s + " on " + l.Device
}

type service struct {
	key    reflect.Type
	stage  Stage
	making sync.Mutex // held by whoever makes value; nothing else is done under it
	made   atomic.Bool
	value  Service
}

// NewResources builds resources for a device that no runtime shares.
func NewResources(d Device, o ResourceOptions) (*Resources, error) {
	if d.drv == nil {
		return nil, zeroDevice("runtime.NewResources")
	}
	if o.MemoryLimit < 0 {
		return nil, weir.Argf("runtime.NewResources", "memory limit %d; expected 0 or more bytes", o.MemoryLimit)
	}
	if o.Lowering.MostTogether < 0 {
		return nil, weir.Argf("runtime.NewResources", "at most %d operations together; expected 1 or more, or 0 for the default", o.Lowering.MostTogether)
	}
	if o.ReleaseThreshold < -1 {
		return nil, weir.Argf("runtime.NewResources", "release threshold %d; expected bytes, 0 for the default or -1 for none", o.ReleaseThreshold)
	}
	if o.Streams == 0 {
		o.Streams = stream.DefaultCount
	}
	if o.ReleaseThreshold == 0 {
		o.ReleaseThreshold = d.Capabilities().MemoryBytes / 8
	}
	o.ReleaseThreshold = max(o.ReleaseThreshold, 0)
	if o.ExitWait == 0 {
		o.ExitWait = DefaultExitWait
	}
	r := &Resources{dev: d, options: o}
	r.services.Store(&[]*service{})
	var err error
	if r.streams, err = stream.NewPool(d.drv, stream.Options{Count: o.Streams, Priority: o.StreamPriority, Debug: o.Debug}); err != nil {
		return nil, err
	}
	if r.own, err = stream.NewPool(d.drv, stream.Options{Count: 2}); err != nil {
		return nil, errors.Join(err, r.streams.Close())
	}
	for _, s := range []*stream.Stream{&r.reclaim, &r.supply} {
		if *s, err = r.own.Acquire(context.Background()); err != nil {
			return nil, errors.Join(err, r.streams.Close(), r.own.Close())
		}
	}
	return r, nil
}

// Device is the device whose resources these are.
func (r *Resources) Device() Device { return r.dev }

// Options answers the configuration, with its defaults filled in.
func (r *Resources) Options() ResourceOptions { return r.options }

// Streams is the pool for operations.
func (r *Resources) Streams() *stream.Pool { return r.streams }

// Reclaim is the stream on which memory is given back, once it has waited for
// the memory's last users. It is never leased to operations.
func (r *Resources) Reclaim() stream.Stream { return r.reclaim }

// Supply is the stream on which memory is taken. Nothing waits on it, so that
// taking memory never depends on what is still being given back.
func (r *Resources) Supply() stream.Stream { return r.supply }

// Use answers the resources' one service of type S, made by make on first use.
// Packages that keep something for each device (memory, library handles) call
// it where they are first asked for it, so that runtime need not know them;
// programs call those packages instead. A type is one service: stage and make
// are those of the first use, and later ones are ignored.
//
// When make fails its error is answered and the next use tries again. After
// Close nothing more is made, which is ErrClosed; a service that was made is
// still answered and refuses new use itself. Within a stage, services are
// closed in the reverse order of their first use.
//
// It is safe for concurrent use: make runs once at a time for each type, and
// others who use that type wait for it, so it may use other services but not
// its own. Once the service is made, Use takes no lock and allocates nothing.
func Use[S Service](r *Resources, stage Stage, make func(*Resources) (S, error)) (S, error) {
	var none S
	key := reflect.TypeFor[S]()
	s := r.service(key)
	if s == nil {
		var err error
		if s, err = r.register(key, stage); err != nil {
			return none, err
		}
	}
	if !s.made.Load() {
		s.making.Lock()
		defer s.making.Unlock()
		if !s.made.Load() {
			if err := r.open(); err != nil {
				return none, err
			}
			value, err := make(r)
			if err != nil {
				return none, err
			}
			s.value = value
			s.made.Store(true)
		}
	}
	return s.value.(S), nil
}

// service is the one of a type; nil if it was never asked for.
func (r *Resources) service(key reflect.Type) *service {
	for _, s := range *r.services.Load() {
		if s.key == key {
			return s
		}
	}
	return nil
}

// open is nil, or the ErrClosed after Close.
func (r *Resources) open() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return &weir.Error{Op: "runtime.Use", Device: r.dev.Name(), Kind: weir.KindLogic, Message: "the resources are closed", Err: weir.ErrClosed}
	}
	return nil
}

func (r *Resources) register(key reflect.Type, stage Stage) (*service, error) {
	if err := r.open(); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.service(key); s != nil {
		return s, nil
	}
	s := &service{key: key, stage: stage}
	fresh := append(slices.Clone(*r.services.Load()), s)
	r.services.Store(&fresh)
	return s, nil
}

// Live lists every stream, lease and buffer that is still held.
func (r *Resources) Live() []Leak {
	var live []Leak
	r.each(-1, func(s Service) error { live = append(live, s.Live()...); return nil })
	for _, h := range r.streams.Leased() {
		live = append(live, Leak{Kind: "stream", Name: fmt.Sprintf("%s/%d", r.dev.Name(), h.Index), Device: r.dev.Name(), Stack: h.Stack})
	}
	return live
}

// each calls do for every service that was made, latest first, of one stage
// or, with -1, of all, and joins the errors. It waits for one that is being
// made.
func (r *Resources) each(stage Stage, do func(Service) error) error {
	order := *r.services.Load() // of their first use
	var errs []error
	for i := len(order) - 1; i >= 0; i-- {
		s := order[i]
		s.making.Lock()
		made := s.made.Load()
		s.making.Unlock()
		if made && (stage < 0 || s.stage == stage) {
			errs = append(errs, do(s.value))
		}
	}
	return errors.Join(errs...)
}

// Close takes everything down. It refuses, and changes nothing, while buffers,
// streams or leases live; the error lists them.
func (r *Resources) Close() error {
	collect(func() bool { return len(r.Live()) > 0 })
	if live := r.Live(); len(live) > 0 {
		return errors.Join(leakErrors(live)...)
	}
	return shut(r)
}

// shut takes several devices' resources down: all drain provider work and
// streams before any destroys a provider, and so on.
func shut(all ...*Resources) error {
	var open []*Resources
	for _, r := range all {
		r.mu.Lock()
		if !r.closed {
			r.closed = true
			open = append(open, r)
		}
		r.mu.Unlock()
	}
	var errs []error
	lost := map[*Resources]bool{}
	for _, step := range []func(*Resources) error{(*Resources).drain, (*Resources).destroyProviders, (*Resources).destroyRest} {
		for _, r := range open {
			for _, err := range apart(step(r)) {
				if errors.Is(err, weir.ErrDeviceLost) && r.dev.Err() != nil {
					if lost[r] { // every call of a lost device says so; once is enough
						continue
					}
					lost[r] = true
				}
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// apart takes joined errors apart.
func apart(err error) []error {
	if err == nil {
		return nil
	}
	many, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, e := range many.Unwrap() {
		all = append(all, apart(e)...)
	}
	return all
}

func (r *Resources) drain() error { return errors.Join(r.each(-1, Service.Drain), r.streams.Drain()) }

func (r *Resources) destroyProviders() error {
	return errors.Join(r.each(StageSession, Service.Close), r.each(StageProvider, Service.Close))
}

func (r *Resources) destroyRest() error {
	return errors.Join(r.each(StageMemory, Service.Close), r.streams.Close(), r.reclaim.Release(), r.supply.Release(), r.own.Close())
}

func leakErrors(live []Leak) []error {
	var errs []error
	for _, l := range live {
		message := l.String() + " is still held"
		if l.Stack == "" {
			message += "; WEIR_DEBUG=leaks tells where it was made"
		}
		errs = append(errs, &weir.Error{Op: "runtime.Close", Device: l.Device, Kind: weir.KindLogic,
			Message: message, Stack: l.Stack, Err: weir.ErrLeak})
	}
	return errs
}
