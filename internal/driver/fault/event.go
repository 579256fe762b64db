package fault

import "github.com/weirgo/weir/internal/driver"

type event struct {
	dev   *device
	inner driver.Event
}

func (e *event) Unwrap() driver.Event { return e.inner }
func (e *event) Query() (bool, error) { return answer(e.dev, EventQuery, e.inner.Query) }
func (e *event) Synchronize() error   { return e.dev.do(EventSynchronize, e.inner.Synchronize) }
func (e *event) Destroy() error       { return e.dev.do(EventDestroy, e.inner.Destroy) }
