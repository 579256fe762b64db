package stream

import "sync/atomic"

// Counters say what streams were given since they were made.
type Counters struct {
	Submissions uint64 // of work: a launch, a copy or a fill each, or a call of a library that makes several
	Records     uint64 // events that were recorded
	Waits       uint64 // that a stream was given for another one's event
	Elided      uint64 // that it was not given: for its own work, and for what was known to be done
}

// counts are those of one stream. Whoever submits writes to its line anyway.
type counts struct{ submissions, records, waits, elided atomic.Uint64 }

// Counters answers the sums over the pool's streams.
func (p *Pool) Counters() (c Counters) {
	for _, l := range p.lines {
		c.Submissions += l.submissions.Load()
		c.Records += l.records.Load()
		c.Waits += l.waits.Load()
		c.Elided += l.elided.Load()
	}
	return c
}
