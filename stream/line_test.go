package stream

import (
	"testing"
	"unsafe"

	"golang.org/x/sys/cpu"

	"github.com/weirgo/weir/internal/driver/host"
)

func TestNoTwoStreamsShareACacheLine(t *testing.T) {
	const lineBytes = unsafe.Sizeof(cpu.CacheLinePad{})
	d, err := host.New(host.Options{}).Open(0)
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewPool(d, Options{Count: 64})
	if err != nil {
		t.Fatal(err)
	}
	owner := map[uintptr]string{}
	for _, l := range p.lines {
		begin := uintptr(unsafe.Pointer(l))
		end := begin + unsafe.Offsetof(l.shared) + unsafe.Sizeof(l.shared)
		for at := begin / lineBytes; at <= (end-1)/lineBytes; at++ {
			if other, taken := owner[at]; taken {
				t.Errorf("%s and %s share the cache line at %#x", other, l.name, at*lineBytes)
			}
			owner[at] = l.name
		}
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}
