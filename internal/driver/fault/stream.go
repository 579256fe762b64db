package fault

import "github.com/weirgo/weir/internal/driver"

type stream struct {
	dev   *device
	inner driver.Stream
}

func (s *stream) Unwrap() driver.Stream { return s.inner }
func (s *stream) Native() uintptr       { return s.inner.Native() }

func (s *stream) Record(e driver.Event) error {
	return s.dev.do(StreamRecord, func() error { return s.inner.Record(Unwrap(e)) })
}

func (s *stream) Wait(e driver.Event) error {
	return s.dev.do(StreamWait, func() error { return s.inner.Wait(Unwrap(e)) })
}

func (s *stream) Query() (bool, error) { return answer(s.dev, StreamQuery, s.inner.Query) }

// Idle is false: what it would spare are calls that a plan is to see.
func (s *stream) Idle() bool { return false }

func (s *stream) Synchronize() error { return s.dev.do(StreamSynchronize, s.inner.Synchronize) }
func (s *stream) Destroy() error     { return s.dev.do(StreamDestroy, s.inner.Destroy) }

func (s *stream) Copy(dst, src driver.Ptr, bytes int64) error {
	return s.dev.do(StreamCopy, func() error { return s.inner.Copy(dst, src, bytes) })
}

func (s *stream) CopyPeer(dst driver.Ptr, to int, src driver.Ptr, from int, bytes int64) error {
	return s.dev.do(StreamCopyPeer, func() error { return s.inner.CopyPeer(dst, to, src, from, bytes) })
}

func (s *stream) CopyIn(dst driver.Ptr, src []byte) error {
	return s.dev.do(StreamCopyIn, func() error { return s.inner.CopyIn(dst, src) })
}

func (s *stream) CopyOut(dst []byte, src driver.Ptr) error {
	return s.dev.do(StreamCopyOut, func() error { return s.inner.CopyOut(dst, src) })
}

func (s *stream) Zero(dst driver.Ptr, bytes int64) error {
	return s.dev.do(StreamZero, func() error { return s.inner.Zero(dst, bytes) })
}

func (s *stream) Launch(k *driver.Kernel) error {
	return s.dev.do(StreamLaunch, func() error { return s.inner.Launch(k) })
}

func (s *stream) Call(fn func()) error {
	return s.dev.do(StreamCall, func() error { return s.inner.Call(fn) })
}
