package buffer

import "github.com/weirgo/weir/internal/garbage"

// Go's collector sees a few hundred bytes of each buffer, whatever memory it
// stands for, so a program that leaves buffers to it would gather gigabytes
// before it looks. When what buffers use has doubled since the last collection,
// Memory runs one, as the collector does for its own heap with GOGC=100.
//
// It runs on a goroutine that asks for more, before that takes anything; in the
// background it would fall behind. Others go on until use has doubled once more,
// and then wait for it. All waits are bounded: finalizers are anybody's.

const leastPressure = 256 << 20 // the use below which no collection is run

// relieve collects garbage if use has grown so far that it is due.
func (m *Memory) relieve() {
	if !m.pressed.Load() { // which is asked for each buffer
		return
	}
	m.mu.Lock()
	due := max(leastPressure, 2*m.survived)
	running := m.collecting
	switch {
	case m.stats.Used < due:
		m.mu.Unlock()
		return
	case running != nil:
		behind := m.stats.Used >= 2*due
		m.mu.Unlock()
		if behind {
			<-running
		}
		return
	}
	running = make(chan struct{})
	m.collecting = running
	before := m.taken
	m.mu.Unlock()
	if garbage.Round() {
		m.quiesce()
	}
	m.mu.Lock()
	m.survived = max(m.stats.Used-(m.taken-before), 0) // what was taken meanwhile may be garbage
	m.press()
	m.collected++
	m.collecting = nil
	m.mu.Unlock()
	close(running)
}

// press notes whether a collection is due; under mu, whenever that changes.
func (m *Memory) press() {
	if due := m.stats.Used >= max(leastPressure, 2*m.survived); due != m.pressed.Load() {
		m.pressed.Store(due)
	}
}

// decay forgets, by halves, how much once survived; under mu.
func (m *Memory) decay() {
	if m.stats.Used < m.survived/4 {
		m.survived /= 2
	}
}
