package main

import (
	"context"
	"io"
	"sync/atomic"
	"time"

	"github.com/schollz/progressbar/v3"
)

const redraw = 100 * time.Millisecond

// contracting runs do, which contracts in so many steps and says after each
// that it was submitted, and draws a progress bar meanwhile: on a terminal, when
// it lasts.
func (a *app) contracting(ctx context.Context, steps int, do func(submitted func(done, total int)) error) error {
	var b *bar
	if a.terminal {
		b = startBar(a.stderr, steps, a.patience)
		defer b.stop()
	}
	return do(func(done, total int) {
		if b != nil {
			b.submitted.Store(int64(done))
		}
		if a.submitted != nil {
			a.submitted(ctx, done, total)
		}
	})
}

// bar is a progress bar that a goroutine draws until stop.
type bar struct {
	submitted  atomic.Int64
	quit, gone chan struct{}
}

func startBar(w io.Writer, steps int, patience time.Duration) *bar {
	b := &bar{quit: make(chan struct{}), gone: make(chan struct{})}
	go b.draw(w, steps, patience)
	return b
}

// stop takes the bar away.
func (b *bar) stop() {
	close(b.quit)
	<-b.gone
}

func (b *bar) draw(w io.Writer, steps int, patience time.Duration) {
	defer close(b.gone)
	select {
	case <-b.quit:
		return
	case <-time.After(patience):
	}
	p := progressbar.NewOptions(steps, progressbar.OptionSetWriter(w), progressbar.OptionSetDescription("contracting"),
		progressbar.OptionShowCount(), progressbar.OptionSetWidth(30))
	tick := time.NewTicker(redraw)
	defer tick.Stop()
	for {
		// A terminal that refuses the bar is no reason to stop the work.
		_ = p.Set64(max(0, b.submitted.Load()-inFlight))
		_ = p.RenderBlank()
		select {
		case <-b.quit:
			_ = p.Clear()
			return
		case <-tick.C:
		}
	}
}
