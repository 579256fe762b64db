package graph

import (
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestAPlanOrdersAllThatItIsToldTo follows what each node comes after on its lane and
// by its waits, and finds all of its After there.
func TestAPlanOrdersAllThatItIsToldTo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := make([]Node, rapid.IntRange(0, 40).Draw(t, "nodes"))
		for i := range nodes {
			for range rapid.IntRange(0, min(i, 4)).Draw(t, "needs") {
				nodes[i].After = append(nodes[i].After, rapid.IntRange(0, i-1).Draw(t, "after"))
			}
		}
		places, lanes := plan(nodes)
		if lanes > mostLanes {
			t.Fatalf("%d lanes", lanes)
		}
		tail := map[int]int{}
		behind := make([]map[int]bool, len(nodes))
		for i, p := range places {
			behind[i] = map[int]bool{}
			follow := func(k int) {
				behind[i][k] = true
				for b := range behind[k] {
					behind[i][b] = true
				}
			}
			if k, ok := tail[p.lane]; ok {
				follow(k)
			}
			for _, k := range p.waits {
				if !places[k].awaited || places[k].lane == p.lane {
					t.Errorf("node %d waits for %d, which records no event for it", i, k)
				}
				follow(k)
			}
			tail[p.lane] = i
			for _, k := range nodes[i].After {
				if !behind[i][k] {
					t.Errorf("node %d does not come after %d", i, k)
				}
			}
		}
	})
}

func TestAChainStaysOnItsLaneAndBranchesDoNot(t *testing.T) {
	chain, lanes := plan([]Node{{}, {After: []int{0}}, {After: []int{1}}})
	if lanes != 1 || len(chain[2].waits) != 0 {
		t.Errorf("a chain is on %d lanes, and waits for %v", lanes, chain[2].waits)
	}
	branches, lanes := plan([]Node{{}, {}, {After: []int{0}}, {After: []int{1}}, {After: []int{2, 3}}})
	if lanes != 2 || branches[2].lane == branches[3].lane || len(branches[4].waits) != 1 {
		t.Errorf("two branches are on %d lanes, as %v", lanes, branches)
	}
}
