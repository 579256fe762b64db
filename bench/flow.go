package bench

import (
	"context"
	"errors"
	goruntime "runtime"
	"sync"
	"time"

	"github.com/weirgo/weir/async"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/tensor"
	"github.com/weirgo/weir/tensor/flow"
)

var flowSubmit = Scenario{
	Name: "flow-submit",
	About: "asking for a 64x64 product of float32 by flow.MatMul on one goroutine, beside taking a mutex, allocating 144 bytes and" +
		" appending 168 to a list: while the task that launches is held, and while it launches on another core; what they make is checked",
	Need: "at most 200 ns and one heap allocation",
	Cases: func(env Env) []Case {
		ctx := runtime.On(context.Background(), env.Resources.Device())
		return []Case{
			submitCase(ctx, "held", true, Limit{Of: OfValue, Max: 200}, Limit{Of: OfAllocs, Max: 1}),
			submitCase(ctx, "launching", false),
		}
	},
}

// mostAsked is how many operations are asked for before what was asked for is
// waited for.
const mostAsked = 1000

func submitCase(ctx context.Context, name string, held bool, limits ...Limit) Case {
	return Case{Name: name + " / mutex and append", Unit: Nanoseconds, Limits: limits, Open: func(context.Context) (*Trial, error) {
		a, err := tensor.Full(ctx, 1, tensor.Float32, 64, 64)
		if err != nil {
			return nil, err
		}
		x := &submitter{ctx: ctx, x: async.Of(a), held: held}
		trial := &Trial{Value: x.ask, Floor: appendRecords, Fixed: mostAsked, Check: x.check, Close: a.Free}
		if held {
			trial.Allocs, trial.Mallocs = true, x.mallocs
		}
		return trial, nil
	}}
}

// submitter asks for the square of x.
type submitter struct {
	ctx  context.Context
	x    *flow.Value
	held bool
}

func (s *submitter) ask(n int) (total time.Duration, err error) {
	for ; n > 0; n -= mostAsked {
		d, err := s.chunk(min(n, mostAsked), func() {}, func(*flow.Value) error { return nil })
		if err != nil {
			return 0, err
		}
		total += d
	}
	return total, nil
}

// chunk asks for n products and waits until they are launched, which is not timed;
// between is called when they have been asked for, and done with the last.
func (s *submitter) chunk(n int, between func(), done func(last *flow.Value) error) (d time.Duration, err error) {
	gate := make(chan struct{})
	if s.held {
		begun := make(chan struct{})
		flow.Apply(s.ctx, "hold", func(_ context.Context, in []*tensor.Array) (*tensor.Array, error) {
			close(begun)
			<-gate
			return in[0], nil
		}, s.x)
		<-begun
	}
	asked := make([]*flow.Value, n)
	start := time.Now()
	for k := range asked {
		asked[k] = flow.MatMul(s.ctx, s.x, s.x)
	}
	d = time.Since(start)
	between()
	close(gate)
	for k, v := range asked {
		a, failure := v.Get(s.ctx)
		if failure == nil && k == n-1 {
			failure = done(v)
		}
		if failure == nil {
			failure = a.Free()
		}
		err = errors.Join(err, failure)
	}
	return d, err
}

// mallocs is how many heap allocations it takes to ask for n products.
func (s *submitter) mallocs(n int) (int64, error) {
	var before, after goruntime.MemStats
	goruntime.GC() // none begins meanwhile
	goruntime.ReadMemStats(&before)
	_, err := s.chunk(n, func() { goruntime.ReadMemStats(&after) }, func(*flow.Value) error { return nil })
	return int64(after.Mallocs - before.Mallocs), err
}

func (s *submitter) check() error {
	_, err := s.chunk(10, func() {}, func(last *flow.Value) error {
		a, err := last.Get(s.ctx)
		if err != nil {
			return err
		}
		data, err := tensor.Data[float32](s.ctx, a)
		if err != nil {
			return err
		}
		for i, v := range data {
			if v != 64 {
				return wrong("element %d of the product of ones is %v; expected 64", i, v)
			}
		}
		return nil
	})
	return err
}

// appendRecords does what the least submission has to.
func appendRecords(n int) (time.Duration, error) {
	type record struct{ _ [21]uintptr }
	type value struct {
		_    [17]uintptr
		self *value
	}
	var mu sync.Mutex
	list := make([]record, 0, mostAsked)
	start := time.Now()
	var last *value
	for k := range n {
		if k%mostAsked == 0 {
			list = list[:0]
		}
		v := &value{}
		v.self = v
		mu.Lock()
		list = append(list, record{})
		mu.Unlock()
		last = v
	}
	d := time.Since(start)
	if last == nil || last.self != last {
		return 0, wrong("nothing was appended")
	}
	return d, nil
}
