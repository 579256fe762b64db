package bench

import "time"

// samples are times of a part of a loop, for a figure.
type samples struct{ all []float64 }

// add notes the time of n operations, in microseconds for each.
func (s *samples) add(d time.Duration, n int) { s.all = append(s.all, Microseconds.of(d, n)) }

// figure is the median.
func (s *samples) figure(name string) Figure { return Figure{name, quantile(s.all, 0.5), "us"} }
