package fault

import (
	"maps"
	"slices"
	"sync"

	"github.com/weirgo/weir"
)

// Plan says which calls of a wrapped family fail. The zero value lets every
// call through and counts it.
//
// The verbs count from the moment they are called: FailNth(c, 1, err) makes
// the next c fail. Each FailNth, KillNth and DropNotify happens once. When
// several verbs fall on one call, the one that was said first acts.
type Plan struct {
	// mu guards everything below. No hook, inner call or waker runs under it.
	mu     sync.Mutex
	counts map[Call]int
	rules  []rule
	hooks  []hook
}

// rule is one verb that has not been used up. Its place is the count of its
// call at which it acts.
type rule struct {
	act   action
	call  Call
	place int
	cause error
}

type action uint8

const (
	pass action = iota
	failOnce
	failOn
	kill
	drop
)

type hook struct {
	call Call
	run  func()
}

// FailNth makes the nth call from now on answer err; nil is a made-up failure:
// out of memory for what allocates, else one of kind cuda. n counts from 1.
func (p *Plan) FailNth(call Call, n int, err error) { p.add(failOnce, call, n, err) }

// FailFrom makes the nth call from now on and every later one answer err; see
// FailNth.
func (p *Plan) FailFrom(call Call, n int, err error) { p.add(failOn, call, n, err) }

// KillNth makes the device of the nth call from now on die of cause just
// before the call, which then answers what calls of a dead device answer. nil
// is a made-up cause. If the inner device has no method Kill(error), the call
// answers ErrNotSupported.
func (p *Plan) KillNth(call Call, n int, cause error) { p.add(kill, call, n, cause) }

// DropNotify loses the notification that the nth Stream.Notify from now on
// asks for: the call answers nil, and the waker is woken only when the device
// is found dead, which the wrapper learns from any call's error, Device.Err
// or a Kill.
func (p *Plan) DropNotify(n int) { p.add(drop, StreamNotify, n, nil) }

// Delay has run called before each of these calls, on the caller's goroutine
// and with no lock held, before the call is made or fails. A hook may block,
// use the plan and make driver calls.
func (p *Plan) Delay(call Call, run func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hooks = append(p.hooks, hook{call, run})
}

// Clear ends every verb; counts stay.
func (p *Plan) Clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules, p.hooks = nil, nil
}

// Counts is how often each call was made, failures included; their sum is
// under Any.
func (p *Plan) Counts() map[Call]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	counts := maps.Clone(p.counts)
	if counts == nil {
		counts = map[Call]int{}
	}
	return counts
}

func (p *Plan) add(act action, call Call, n int, cause error) {
	if n < 1 || call != Any && !slices.Contains(calls, call) {
		panic(weir.Argf("fault.Plan", "call %q, n %d; expected one of Calls or Any, and n of 1 or more", call, n))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = append(p.rules, rule{act: act, call: call, place: p.counts[call] + n, cause: cause})
}

// verdict is what a plan says about one call.
type verdict struct {
	act   action
	n     int // the call's number among its kind
	cause error
}

// enter counts a call, runs its hooks, and then says what becomes of it.
func (p *Plan) enter(call Call) verdict {
	p.mu.Lock()
	if p.counts == nil {
		p.counts = map[Call]int{}
	}
	p.counts[call]++
	p.counts[Any]++
	n, total := p.counts[call], p.counts[Any]
	hooks := slices.Clone(p.hooks)
	p.mu.Unlock()

	for _, h := range hooks {
		if h.call == call || h.call == Any {
			h.run()
		}
	}

	p.mu.Lock()
	defer p.mu.Unlock()
	for i, r := range p.rules {
		at := n
		switch r.call {
		case call:
		case Any:
			at = total
		default:
			continue
		}
		if at == r.place || r.act == failOn && at > r.place {
			if r.act != failOn {
				p.rules = slices.Delete(p.rules, i, i+1)
			}
			return verdict{r.act, n, r.cause}
		}
	}
	return verdict{act: pass, n: n}
}
