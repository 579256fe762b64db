package stream_test

import (
	"context"
	"fmt"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/weirgo/weir/internal/driver/host"
	"github.com/weirgo/weir/scheduler"
	"github.com/weirgo/weir/stream"
)

// TestUnderTheDebugSchedulerTheOrderDoesNotShowHowFastADeviceIs: tasks share
// fewer streams than they are, and leave work behind that is done at once, or
// takes a while.
func TestUnderTheDebugSchedulerTheOrderDoesNotShowHowFastADeviceIs(t *testing.T) {
	order := func(seed uint64, streams int, slow bool) string {
		var names strings.Builder
		d := scheduler.NewDebug(scheduler.DebugOptions{Seed: seed, Trace: func(i scheduler.Info) { names.WriteString(i.Name) }})
		dev, err := host.New(host.Options{HandOver: true}).Open(0)
		if err != nil {
			t.Fatal(err)
		}
		p, err := stream.NewPool(dev, stream.Options{Count: streams})
		if err != nil {
			t.Fatal(err)
		}
		for k := range 6 {
			d.Start(scheduler.New(context.Background(), scheduler.Spec{Name: fmt.Sprint(k), Run: func(ctx context.Context) error {
				for range 4 {
					s, err := p.Acquire(ctx)
					if err != nil {
						return err
					}
					scheduler.Breathe(ctx)
					err = s.Call(func() {
						for range 200 {
							if slow {
								goruntime.Gosched()
							}
						}
					})
					if err != nil {
						return err
					}
					if err := s.Release(); err != nil {
						return err
					}
				}
				return nil
			}}))
		}
		if err := d.Run(); err != nil {
			t.Fatal(err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		return names.String()
	}
	for _, streams := range []int{1, 2, 5} {
		seen := map[string]bool{}
		for seed := range uint64(20) {
			fast := order(seed, streams, false)
			if slow := order(seed, streams, true); slow != fast {
				t.Errorf("%d streams, seed %d: a fast device gives the order %s, a slow one %s", streams, seed, fast, slow)
			}
			seen[fast] = true
		}
		if len(seen) < 10 {
			t.Errorf("%d streams: 20 seeds gave %d orders", streams, len(seen))
		}
	}
}
