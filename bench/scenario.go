package bench

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/runtime"
)

// Scenario is one question about the cost of something.
type Scenario struct {
	Name  string
	About string // what is measured, and the floor beside it
	Need  string // the required figure in words; "" when there is none
	On    Where
	// Cases answers the cases to run in env, in order.
	Cases func(env Env) []Case
}

// Where says on which devices a scenario means something.
type Where int

const (
	Anywhere Where = iota
	HostOnly
	GPUOnly
)

// fits answers "", or why the scenario says nothing about d.
func (w Where) fits(d runtime.Device) string {
	switch {
	case w == HostOnly && !d.IsHost():
		return fmt.Sprintf("it is about the host device; this is %s", d.Name())
	case w == GPUOnly && d.IsHost():
		text := fmt.Sprintf("it needs a GPU; this is %s", d.Name())
		if err := runtime.NoGPU(); err != nil {
			text += fmt.Sprintf(" (%v)", err)
		}
		return text
	}
	return ""
}

// Env is where a scenario runs.
type Env struct {
	Resources *runtime.Resources
	Quick     bool
}

// Case is one measurement of a scenario.
type Case struct {
	Name   string
	Unit   Unit // of value and floor
	Limits []Limit
	At     Point // where plots have the case
	// Open prepares the case. It allocates what the case needs, so that other
	// cases do not pay for it.
	Open func(ctx context.Context) (*Trial, error)
}

// Point is where a case lies in a family of like cases, for plots.
type Point struct {
	Series string `json:"series"`          // of the cases that a line joins; "" keeps the case out of plots
	Size   int    `json:"size,omitempty"`  // extent of the operands; 0 where it means nothing
	Count  int    `json:"count,omitempty"` // number of operations; 0 where it means nothing
}

// Trial is a case that is ready to run.
type Trial struct {
	Value, Floor Loop
	// Fixed is the number of operations in a round; 0 lets the harness choose
	// it so that a round lasts long enough for the clock.
	Fixed int
	// Allocs asks for the heap allocations of one operation of each.
	Allocs bool
	// Mallocs answers how many heap allocations n operations of the value make,
	// where its loop makes others too; nil where it does not.
	Mallocs func(n int) (int64, error)
	// Check compares the results of value and floor and whatever else must
	// hold. It runs before anything is timed.
	Check func() error
	// Peers is the same work for other libraries; nil is none.
	Peers *PeerWork
	// Figures answers what else is known after the timing; nil is nothing.
	Figures func(Result) []Figure
	// Close gives everything back; nil is nothing.
	Close func() error
}

// Loop does an operation n times, and answers how long that took without what
// had to be set up.
type Loop func(n int) (time.Duration, error)

// each is the loop of an operation that needs no set-up.
func each(op func() error) Loop {
	return func(n int) (time.Duration, error) {
		start := time.Now()
		for range n {
			if err := op(); err != nil {
				return 0, err
			}
		}
		return time.Since(start), nil
	}
}

// Unit is a unit of time per operation.
type Unit string

const (
	Nanoseconds  Unit = "ns/op"
	Microseconds Unit = "us/op"
	Milliseconds Unit = "ms/op"
)

var unitLengths = map[Unit]time.Duration{Nanoseconds: time.Nanosecond, Microseconds: time.Microsecond, Milliseconds: time.Millisecond}

// of is d, spent on n operations, in the unit.
func (u Unit) of(d time.Duration, n int) float64 {
	return float64(d) / float64(n) / float64(unitLengths[u])
}

// seconds is the time of an operation that takes value in the unit.
func (u Unit) seconds(value float64) float64 { return value * unitLengths[u].Seconds() }

// fromSeconds is s seconds in the unit.
func (u Unit) fromSeconds(s float64) float64 { return s / unitLengths[u].Seconds() }

// Figure is a further number of a case.
type Figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit,omitempty"`
}

// Scenarios lists all scenarios in the order in which they run.
func Scenarios() []Scenario {
	return []Scenario{gemmLarge, gemmSmall, leases, ledger, reads, waiters, events, tasks, parked, flowSubmit,
		flowIndependent, flowChain, flowMixed, flowReplay, flowStreams, flowLargeAmongSmall, flowHost,
		gpuGemm, gpuSmall, gpuChain, gpuStreams, gpuCopy, gpuFlat, gpuStart, gpuCalls}
}

// Find answers the scenarios with the given names, all without any. An unknown
// name is an ErrArgument that lists the known ones.
func Find(names ...string) ([]Scenario, error) {
	all := Scenarios()
	if len(names) == 0 {
		return all, nil
	}
	var found []Scenario
	for _, name := range names {
		i := slices.IndexFunc(all, func(s Scenario) bool { return s.Name == name })
		if i < 0 {
			var known []string
			for _, s := range all {
				known = append(known, s.Name)
			}
			return nil, weir.Argf("bench.Find", "scenario %q; there are %s", name, strings.Join(known, ", "))
		}
		found = append(found, all[i])
	}
	return found, nil
}
