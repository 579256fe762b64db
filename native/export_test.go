package native

import (
	"github.com/weirgo/weir/dtype"
	"github.com/weirgo/weir/internal/driver"
)

// StreamOf is the session's stream, for work of native code's.
func StreamOf(s *Session) (driver.Stream, error) { return s.core.stream.Submit() }

// Vector is what the view shows, of rank 1, as the driver takes it.
func (v *View) Vector() driver.View {
	return driver.View{Ptr: driver.Ptr(v.data), DType: dtype.DType(v.dtype), Shape: v.shape[:1], Strides: v.strides[:1]}
}

// ForgetHost has the next use load the runtime library for host devices again, until
// restore.
func ForgetHost() (restore func()) { return onHost.forget() }

// RecordOf is a deposit's record, and State, SetState are of what native threads do.
func RecordOf(d *Deposit) *Record { return d.owner.record }

const (
	DepositOpen    = depositOpen
	DepositFilling = depositFilling
	DepositFilled  = depositFilled
	DepositClosed  = depositClosed
)

func (r *Record) State() *int32 { return &r.state }

// Within is within, of a caller that is inside of nothing.
func Within() string { return within() }

// BlockBytes is the size of a job's block.
func BlockBytes(params []Param) uintptr {
	_, bytes := layout(params)
	return bytes
}

// Waiting is how many jobs of the session wait for their turn.
func Waiting(s *Session) int {
	_, _, _, waiting := s.core.turns.Counts()
	return waiting
}

// Freed says whether the session's handle was freed.
func Freed(s *Session) bool {
	s.core.mu.Lock()
	defer s.core.mu.Unlock()
	return s.core.freed
}

// ForOtherDevices is the library as if it had been opened for devices of another kind.
func ForOtherDevices(l *Library) *Library {
	e := *l.runtime
	e.flavour = &flavour{what: "other devices"}
	return &Library{Checker: l.Checker, file: l.file, runtime: &e}
}
