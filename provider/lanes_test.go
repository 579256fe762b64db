package provider_test

import (
	"fmt"
	goruntime "runtime"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/weirgo/weir/scheduler"
)

// lanes are the lanes of a scheduler, as many as the channel holds.
type lanes chan struct{}

func (l lanes) Resume()              { l <- struct{}{} }
func (l lanes) Yield(scheduler.Wait) { <-l }

// TestAsManyHandlesAreMadeAndLeasedAtOnceWhateverTheLanes has tasks hold their
// leases until all handles are leased, parked, which a lane more or less must
// neither prevent nor exceed.
func TestAsManyHandlesAreMadeAndLeasedAtOnceWhateverTheLanes(t *testing.T) {
	const tasks, streams, tools = 12, 5, 3
	before := goruntime.GOMAXPROCS(0)
	defer goruntime.GOMAXPROCS(before)
	for _, processors := range []int{1, 4} {
		for _, n := range []int{1, 2, tools, 2 * tasks} {
			t.Run(fmt.Sprintf("%d lanes, %d processors", n, processors), func(t *testing.T) {
				goruntime.GOMAXPROCS(processors)
				synctest.Test(t, func(t *testing.T) {
					r := newRig(t, streams, tools)
					defer r.close()
					lane := make(lanes, n)
					ctx := scheduler.WithLane(t.Context(), lane)
					open := make(chan struct{})
					held, most := 0, 0
					var mu sync.Mutex // guards them
					count := func(by int) {
						mu.Lock()
						defer mu.Unlock()
						held += by
						most = max(most, held)
					}
					var all sync.WaitGroup
					for range tasks {
						all.Go(func() {
							lane.Resume()
							defer lane.Yield(nil)
							x, err := r.e.Acquire(ctx)
							if err != nil {
								t.Error(err)
								return
							}
							count(1)
							if err := scheduler.Park(ctx, open, nil); err != nil {
								t.Error(err)
							}
							count(-1)
							r.release(&x)
						})
					}
					synctest.Wait() // everybody is parked
					r.expect(fmt.Sprintf("0 idle, %d leased, 0 pending, %d waiting", tools, tasks-tools),
						fmt.Sprintf("%d idle, %d leased, 0 pending, 0 waiting", streams-tools, tools))
					close(open)
					all.Wait()
					if r.made != tools || r.e.Size() != tools || most != tools {
						t.Errorf("%d tools were made, the pool says %d, and %d were held at once; expected %d", r.made, r.e.Size(), most, tools)
					}
				})
			})
		}
	}
}
