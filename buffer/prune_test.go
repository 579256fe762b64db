package buffer_test

import (
	"testing"

	"github.com/weirgo/weir/buffer"
)

// TestFinishedReadersLeaveTheLedgerWithTheNextReadsEnd, whether or not that is
// on a stream whose reader the ledger has, and is finished itself.
func TestFinishedReadersLeaveTheLedgerWithTheNextReadsEnd(t *testing.T) {
	for name, next := range map[string]int{"on a stream of the ledger's": 0, "on another": 4} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, options{})
			s := w.streams(5)
			b := w.new(64)
			defer w.free(b)
			fresh := buffer.LedgerLength(b)
			expect := func(when string, readers int) {
				t.Helper()
				if n := buffer.LedgerLength(b) - fresh; n != readers {
					t.Errorf("%s the ledger has %d readers; expected %d", when, n, readers)
				}
			}
			var ends []func()
			for _, s := range s[:4] {
				ends = append(ends, w.stall(s))
				w.read(s, b, nil)
			}
			expect("with four reads under way", 4)
			for i, end := range ends[:3] {
				end()
				w.wait(s[i])
			}
			expect("before anything is ended", 4)
			stay := w.stall(s[next])
			w.read(s[next], b, nil)
			expect("with a fifth read and three finished", 2)
			stay()
			ends[3]()
			w.wait(s[next])
			w.wait(s[3])

			acc := buffer.Begin(s[1]) // nothing is submitted, so that its end is the stream's last, which is done
			acc.Read(b)
			w.ok(acc.End())
			expect("with a read that is finished when it ends", 0)
		})
	}
}

// TestSupersededCompletionsLeaveTheLedger: an earlier read of the same stream,
// and every read before a write.
func TestSupersededCompletionsLeaveTheLedger(t *testing.T) {
	w := newWorld(t, options{})
	s := w.streams(3)
	b := w.new(64)
	fresh := buffer.LedgerLength(b)
	for _, s := range s {
		w.stall(s)
		for range 3 {
			w.read(s, b, nil)
		}
	}
	if n := buffer.LedgerLength(b) - fresh; n != len(s) {
		t.Errorf("after three reads on each of %d streams the ledger has %d readers; expected one a stream", len(s), n)
	}
	for range 2 {
		w.write(s[0], b, nil)
		if n := buffer.LedgerLength(b); n != 1 {
			t.Errorf("after a write the ledger has %d completions; expected the write's", n)
		}
	}
	w.free(b)
}
