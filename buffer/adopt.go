package buffer

import (
	"errors"

	"github.com/weirgo/weir"
)

// Adopt makes b, the first field of a heap object made for it, the owner of bytes > 0
// of memory that foreign code allocated where m's is, and whose contents are
// complete. After the last use on every stream, for which the host waits, release is
// called once, on any goroutine; also when Adopt answers an error. What is adopted
// counts among Stats.Buffers, and in no number of bytes.
func (m *Memory) Adopt(b *Buffer, at Ptr, bytes int64, release func() error) error {
	if at == 0 || bytes <= 0 {
		return errors.Join(weir.Argf("buffer.Adopt", "%d bytes at %#x; expected a positive size and an address", bytes, at), release())
	}
	if err := m.adopt(b, &block{ptr: at, bytes: bytes, class: -1, foreign: release}, bytes); err != nil {
		return err
	}
	b.watch()
	return nil
}
