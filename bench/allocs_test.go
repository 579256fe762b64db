//go:build !race

// The race detector makes sync.Pool, through which products go, drop things at
// random.

package bench

import (
	"context"
	"errors"
	"testing"
)

// Allocations, unlike times, do not depend on how busy the machine is.
func TestRequiredAllocationsAreKept(t *testing.T) {
	keepsAllocations(t, Env{Resources: start(t), Quick: true}, Scenarios())
}

// keepsAllocations counts what cases allocate that must not exceed a number.
func keepsAllocations(t *testing.T, env Env, scenarios []Scenario) {
	t.Helper()
	required := 0
	for _, s := range scenarios {
		if s.On.fits(env.Resources.Device()) != "" {
			continue
		}
		for _, c := range s.Cases(env) {
			for _, l := range c.Limits {
				if l.Of != OfAllocs {
					continue
				}
				required++
				n, err := allocationsOf(c)
				if err != nil {
					t.Errorf("%s: %s: %v", s.Name, c.Name, err)
				} else if float64(*n) > l.Max {
					t.Errorf("%s: %s: %d allocations an operation; required %v", s.Name, c.Name, *n, l.Max)
				}
			}
		}
	}
	if required == 0 {
		t.Error("no case requires anything of allocations")
	}
}

func allocationsOf(c Case) (n *int64, err error) {
	trial, err := c.Open(context.Background())
	if err != nil {
		return nil, err
	}
	if trial.Close != nil {
		defer func() { err = errors.Join(err, trial.Close()) }()
	}
	return allocations(trial.mallocs)
}
