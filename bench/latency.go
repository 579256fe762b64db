package bench

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// longestLatency is the largest latency that is told apart, in nanoseconds.
const longestLatency = int64(10 * time.Second)

// newLatency is a histogram of single operations' nanoseconds, to three digits.
func newLatency() *hdrhistogram.Histogram { return hdrhistogram.New(1, longestLatency, 3) }

// latencyFigures are the medians and tails of the value's and the floor's single
// operations.
func latencyFigures(value, floor *hdrhistogram.Histogram) []Figure {
	return []Figure{
		{"p50", float64(value.ValueAtPercentile(50)), "ns"},
		{"p99", float64(value.ValueAtPercentile(99)), "ns"},
		{"floor p50", float64(floor.ValueAtPercentile(50)), "ns"},
		{"floor p99", float64(floor.ValueAtPercentile(99)), "ns"},
	}
}
