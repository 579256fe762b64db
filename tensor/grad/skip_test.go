package grad

import (
	"context"
	"slices"
	"testing"

	"github.com/weirgo/weir/internal/callers"
)

func TestOnlyStepsToWhatIsAskedForAreTaken(t *testing.T) {
	node := func(name string, taken *[]string, parents ...*Node) *Node {
		return &Node{parents: parents, back: func(_ context.Context, k int, c *Node) *Node {
			*taken = append(*taken, name+[]string{"0", "1"}[k])
			return c
		}}
	}
	var taken []string
	x, constant := Leaf(nil), Leaf(nil)
	beside := node("beside", &taken, constant, constant)
	left := node("left", &taken, beside, x)
	y := node("y", &taken, left, beside)
	one := Leaf(nil)
	if g := backward(t.Context(), callers.Site{}, "", y, one, []*Node{x}); g[0] != one {
		t.Errorf("got %v; want the cotangent, handed on", g)
	}
	if want := []string{"y0", "left1"}; !slices.Equal(taken, want) {
		t.Errorf("the steps were %v; want %v", taken, want)
	}
}
