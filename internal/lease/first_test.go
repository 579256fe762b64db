package lease_test

import (
	"slices"
	"testing"

	"github.com/weirgo/weir/internal/lease"
)

// TestASearchBeginsWhereATestSays, of slots that are idle and of those that are
// found to be; without a test it begins after the slot that was leased last.
func TestASearchBeginsWhereATestSays(t *testing.T) {
	places := []int{4, 1, 4}
	said := func(n int) int {
		if n != 5 {
			t.Errorf("asked for one of %d slots; expected 5", n)
		}
		return places[0]
	}
	leased := func(p *pool, n int) (order []int) {
		for range n {
			h := take(t, p)
			order = append(order, h.Index())
			h.Release(ended())
			places = append(places[1:], places[0])
		}
		return order
	}
	lease.First = said
	p := newPool(5)
	lease.First = nil
	if got := leased(p, 3); !slices.Equal(got, []int{4, 1, 0}) { // 4 is pending, so the next after it
		t.Errorf("leased were %v; expected 4, 1, 0", got)
	}
	if got := leased(p, 2); !slices.Equal(got, []int{2, 3}) {
		t.Errorf("then leased were %v; expected the two that were never leased", got)
	}
	if got := leased(p, 3); !slices.Equal(got, []int{4, 4, 1}) {
		t.Errorf("of pending slots %v were leased; expected those that the test said", got)
	}
	if got := leased(newPool(5), 3); !slices.Equal(got, []int{0, 1, 2}) {
		t.Errorf("without a test %v were leased; expected 0, 1, 2", got)
	}
}
