package buffer

import "github.com/weirgo/weir/runtime"

// Go's collector sees a few hundred bytes of each buffer, whatever memory it
// stands for, so a program that leaves buffers to it would gather gigabytes
// before it looks. When what buffers use has doubled since the last collection,
// Memory runs one, as the collector does for its own heap with GOGC=100, on the
// goroutine that asks for more: in the background it would fall behind.

// leastPressure is the use below which no collection is started.
const leastPressure = 256 << 20

// pressed says whether use has grown so far that a collection is due, and marks
// it as begun; under mu.
func (m *Memory) pressed() bool {
	if m.collecting || m.stats.Used < max(leastPressure, 2*m.survived) {
		return false
	}
	m.collecting = true
	return true
}

// collect frees garbage and notes what survived.
func (m *Memory) collect() {
	runtime.Collect()
	m.quiesce()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.survived = m.stats.Used
	m.collected++
	m.collecting = false
}
