package buffer_test

import (
	"testing"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/buffer"
)

func TestAnAccessRefusesWhatIsNoBuffer(t *testing.T) {
	w := newWorld(t, options{})
	s := w.lease(w.r)
	for name, b := range map[string]*buffer.Buffer{"nil": nil, "the zero Buffer": {}} {
		for op, open := range map[string]func(*buffer.Access, *buffer.Buffer) buffer.Ptr{"Read": (*buffer.Access).Read, "Write": (*buffer.Access).Write} {
			acc := buffer.Begin(s)
			if p := open(&acc, b); p != 0 {
				t.Errorf("%s of %s answers the address %#x", op, name, p)
			}
			refuses(t, acc.End(), weir.ErrArgument, "buffer.%s: the buffer is %s; expected one that a Memory made", op, name)
		}
	}
}
