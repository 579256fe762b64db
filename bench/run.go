package bench

import (
	"context"
	"errors"
	"fmt"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/runtime"
)

// ErrCheck: a case computed something wrong, so its times mean nothing.
var ErrCheck = errors.New("the check failed")

// Options says what to run.
type Options struct {
	Device    runtime.Device // of the installed runtime; zero is the default one
	Scenarios []Scenario
	Quick     bool   // few short rounds and small counts
	Peers     *Peers // measure the cases' work too; nil is none
	// Report receives each result as it is made. An error ends the run.
	Report func(Result) error
	// Progress, where it is set, is told which case runs and what part of the run
	// is done, from 0 to 1.
	Progress func(label string, part float64)
}

// Run measures the scenarios, one case after another. Cases that fail are
// reported, with their error and without numbers, and joined in Run's error;
// the others still run. A scenario that says nothing about the device is reported
// once, as skipped. The end of ctx ends the run between two rounds.
func Run(ctx context.Context, o Options) error {
	d := o.Device
	if d.IsZero() {
		var err error
		if d, err = runtime.At(ctx); err != nil {
			return err
		}
	}
	r, err := runtime.For(d)
	if err != nil {
		return err
	}
	ctx = runtime.On(ctx, d)
	env := Env{Resources: r, Quick: o.Quick}
	e := effortOf(o.Quick)

	type job struct {
		scenario string
		skipped  string
		Case
	}
	var jobs []job
	for _, s := range o.Scenarios {
		if why := s.On.fits(d); why != "" {
			jobs = append(jobs, job{scenario: s.Name, skipped: why})
			continue
		}
		for _, c := range s.Cases(env) {
			jobs = append(jobs, job{scenario: s.Name, Case: c})
		}
	}
	var failures []error
	for i, j := range jobs {
		if j.skipped != "" {
			if err := o.Report(Result{Scenario: j.scenario, Device: d.Name(), Skipped: j.skipped}); err != nil {
				return errors.Join(append(failures, err)...)
			}
			continue
		}
		label := j.scenario + ": " + j.Name
		tell := func(part float64) {
			if o.Progress != nil {
				o.Progress(label, (float64(i)+part)/float64(len(jobs)))
			}
		}
		tell(0)
		res := Result{Scenario: j.scenario, Case: j.Name, Device: d.Name(), Unit: string(j.Unit), At: j.At}
		res.Err = j.run(ctx, e, o.Peers, &res, tell)
		if err := context.Cause(ctx); err != nil {
			return errors.Join(append(failures, err)...)
		}
		if res.Err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", label, res.Err))
		}
		if err := o.Report(res); err != nil {
			return errors.Join(append(failures, err)...)
		}
	}
	return errors.Join(failures...)
}

// run measures one case into res.
func (c *Case) run(ctx context.Context, e effort, peers *Peers, res *Result, tick func(part float64)) (err error) {
	t, err := c.Open(ctx)
	if err != nil {
		return err
	}
	if t.Close != nil {
		defer func() { err = errors.Join(err, t.Close()) }()
	}
	if err := t.Check(); err != nil {
		return err
	}
	if t.Allocs {
		if res.Allocs, err = allocations(t.mallocs); err != nil {
			return err
		}
		if res.FloorAllocs, err = allocations(t.Floor.mallocs); err != nil {
			return err
		}
	}
	values, floors, err := t.time(ctx, e, c.Unit, tick)
	if err != nil {
		return err
	}
	res.summarise(values, floors)
	if t.Figures != nil {
		res.Figures = t.Figures(*res)
	}
	res.judge(c.Limits)
	if t.Peers != nil && peers != nil {
		res.Peers, err = peers.measure(ctx, t.Peers, e, c.Unit)
	}
	return err
}

// wrong is an ErrCheck that says what differs.
func wrong(format string, args ...any) error {
	return &weir.Error{Op: "bench.Check", Kind: weir.KindLogic, Message: fmt.Sprintf(format, args...), Err: ErrCheck}
}
