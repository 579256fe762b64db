package fault

import "github.com/weirgo/weir/internal/driver"

type graph struct {
	dev   *device
	inner driver.Graph
}

func (g *graph) Unwrap() driver.Graph { return g.inner }
func (g *graph) Destroy() error       { return g.dev.do(GraphDestroy, g.inner.Destroy) }

func (g *graph) Launch(s driver.Stream) error {
	return g.dev.do(GraphLaunch, func() error { return g.inner.Launch(Unwrap(s)) })
}

func (d *device) Capture(streams []driver.Stream, submit func() error) (driver.Graph, error) {
	return answer(d, DeviceCapture, func() (driver.Graph, error) {
		bare := make([]driver.Stream, len(streams))
		for i, s := range streams {
			bare[i] = Unwrap(s)
		}
		g, err := d.inner.Capture(bare, submit)
		return &graph{d, g}, err
	})
}
