package buffer_test

import (
	"testing"

	"github.com/weirgo/weir/buffer"
)

func TestEverySmallSizeHasTheSmallestClassThatHoldsIt(t *testing.T) {
	// The sizes by definition: multiples of the smallest block up to four, then
	// four to each doubling.
	var sizes []int64
	for step := int64(1); step <= 4; step++ {
		sizes = append(sizes, step*buffer.SmallestBlock)
	}
	for base := int64(4 * buffer.SmallestBlock); base < buffer.SmallLimit; base *= 2 {
		for step := int64(1); step <= 4; step++ {
			sizes = append(sizes, base+step*base/4)
		}
	}
	if len(sizes) > buffer.ClassCount {
		t.Fatalf("%d sizes and %d classes", len(sizes), buffer.ClassCount)
	}
	class := 0
	for bytes := int64(1); bytes <= buffer.SmallLimit; bytes++ {
		if bytes > sizes[class] {
			class++
		}
		if got := buffer.ClassOf(bytes); got != class {
			t.Fatalf("%d bytes are of class %d; expected %d, of %d bytes", bytes, got, class, sizes[class])
		}
	}
	for class, want := range sizes {
		if got := buffer.ClassBytes(class); got != want {
			t.Errorf("class %d has %d bytes; expected %d", class, got, want)
		}
	}
}
