package stream_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver/fault"
	"github.com/weirgo/weir/stream"
)

func TestAStaleStreamReachesNoDriver(t *testing.T) {
	r := newRig(t, 1, 1)
	defer r.close()
	released := r.stream(0)
	copied := released
	r.release(released)
	present := r.stream(0) // by somebody else
	calls := r.plan.Counts()[fault.Any]
	for name, s := range map[string]stream.Stream{"the zero stream": {}, "a released stream": released, "a copy of one": copied} {
		_, err1 := s.Submit()
		_, err2 := s.Record()
		_, err3 := s.Tail()
		_, err4 := s.Retain()
		_, err5 := s.Native()
		for _, err := range []error{err1, err2, err3, err4, err5, s.Call(func() {}), s.Wait(stream.Completion{}), s.Synchronize(context.Background())} {
			if !errors.Is(err, weir.ErrStale) {
				t.Errorf("%s answers %v; expected ErrStale", name, err)
			}
		}
		if err := s.Release(); err != nil {
			t.Errorf("another release of %s answers %v", name, err)
		}
		if s.Valid() || s.Device() != nil || s.String() != "stale stream" {
			t.Errorf("%s is valid %v, of device %v, named %q", name, s.Valid(), s.Device(), s)
		}
	}
	if n := r.plan.Counts()[fault.Any] - calls; n != 0 || !present.Valid() {
		t.Errorf("stale streams made %d driver calls and left the lease valid %v", n, present.Valid())
	}
	if present.String() != "host:0/0" {
		t.Errorf("the stream is named %q; expected host:0/0", present)
	}
	r.release(present)
}

func TestALentStreamIsUsedAndNotReleasedByWhoeverHasIt(t *testing.T) {
	r := newRig(t, 1, 1)
	defer r.close()
	owned := r.stream(0)
	lent := owned.Lend()
	r.release(lent)
	ran := false
	r.call(lent, func() { ran = true })
	r.settle(lent)
	if !ran || lent.String() != "host:0/0" {
		t.Errorf("after its release the lent stream %v ran its work: %v", lent, ran)
	}
	expectCounts(t, r.pools[0], 0, 1, 0, 0)
	r.release(owned)
	if err := lent.Call(func() {}); !errors.Is(err, weir.ErrStale) {
		t.Errorf("after its owner's release it answers %v; expected ErrStale", err)
	}
	r.release(r.stream(0))
}

// TestASharedStreamReturnsAfterItsLastHandleAndItsWork, in that order.
func TestASharedStreamReturnsAfterItsLastHandleAndItsWork(t *testing.T) {
	inBubble(t, 1, 1, func(t *testing.T, r *rig) {
		a := r.stream(0)
		b, err := a.Retain()
		if err != nil {
			t.Fatal(err)
		}
		r.release(a)
		r.release(a)
		expectCounts(t, r.pools[0], 0, 1, 0, 0)
		end := r.stall(b)
		r.release(b)
		expectCounts(t, r.pools[0], 0, 0, 1, 0)
		if _, ok, _ := r.pools[0].TryAcquire(); ok {
			t.Error("the stream was leased before its work was done")
		}
		end()
		synctest.Wait()
		r.release(r.stream(0))
	})
}

// TestALeaseCarriesAChainInOrder: one lease may carry many dependent operations.
func TestALeaseCarriesAChainInOrder(t *testing.T) {
	r := newRig(t, 1, 2)
	defer r.close()
	s := r.stream(0)
	value := 1
	for i := range 100 {
		if i%2 == 0 {
			r.call(s, func() { value *= 3 })
		} else {
			r.call(s, func() { value = (value + 1) % 1000003 })
		}
	}
	r.settle(s)
	expected := 1
	for i := range 100 {
		if i%2 == 0 {
			expected *= 3
		} else {
			expected = (expected + 1) % 1000003
		}
	}
	if value != expected {
		t.Errorf("the chain gave %d; expected %d", value, expected)
	}
	r.release(s)
}

// TestHandlesReleasedAtOnceLeaveNoFalseCompletion releases both handles of a
// stream that has unfinished work at the same time, often.
func TestHandlesReleasedAtOnceLeaveNoFalseCompletion(t *testing.T) {
	r := newRig(t, 1, 1)
	defer r.close()
	for range 500 {
		a, err := r.pools[0].Acquire(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		b, err := a.Retain()
		if err != nil {
			t.Fatal(err)
		}
		end := r.stall(a)
		var both sync.WaitGroup
		both.Go(func() { r.release(a) })
		both.Go(func() { r.release(b) })
		both.Wait()
		if _, ok, err := r.pools[0].TryAcquire(); ok || err != nil {
			end()
			t.Fatalf("with unfinished work the stream was leased: %v, %v", ok, err)
		}
		end()
	}
}

// TestASubmissionThatARecordOvertookIsNotForgotten: of two who share a stream,
// one asks for the driver's stream, the other records, and the first submits
// only then.
func TestASubmissionThatARecordOvertookIsNotForgotten(t *testing.T) {
	for name, last := range map[string]string{"the submitter releases last": "submitter", "the recorder releases last": "recorder"} {
		for _, verb := range []string{"record", "tail"} {
			t.Run(name+", "+verb, func(t *testing.T) {
				inBubble(t, 1, 1, func(t *testing.T, r *rig) {
					recorder := r.stream(0)
					submitter, err := recorder.Retain()
					if err != nil {
						t.Fatal(err)
					}
					d, err := submitter.Submit()
					if err != nil {
						t.Fatal(err)
					}
					if verb == "record" {
						r.record(recorder)
					} else if _, err := recorder.Tail(); err != nil {
						t.Fatal(err)
					}
					gate := make(chan struct{})
					if err := d.Call(func() { <-gate }); err != nil {
						t.Fatal(err)
					}
					if last == "submitter" {
						r.release(recorder)
						r.release(submitter)
					} else {
						r.release(submitter)
						r.release(recorder)
					}
					if _, ok, err := r.pools[0].TryAcquire(); ok || err != nil {
						t.Errorf("with unfinished work the stream was leased: %v, %v", ok, err)
					}
					close(gate)
					synctest.Wait()
					r.release(r.stream(0))
				})
			})
		}
	}
}

// TestARecordThatFailsAtReleaseIsReportedAndLosesNoStream makes each driver call
// fail that recording takes. The stream is waited for instead.
func TestARecordThatFailsAtReleaseIsReportedAndLosesNoStream(t *testing.T) {
	for _, call := range []fault.Call{fault.StreamRecord, fault.DeviceNewEvent} {
		t.Run(string(call), func(t *testing.T) {
			inBubble(t, 1, 1, func(t *testing.T, r *rig) {
				s := r.stream(0)
				end := r.stall(s)
				ran := false
				r.call(s, func() { ran = true })
				r.plan.FailNth(call, 1, errCause)
				if call == fault.DeviceNewEvent {
					r.refused++
				}
				released := make(chan error)
				go func() { released <- s.Release() }()
				synctest.Wait()
				if _, ok, err := r.pools[0].TryAcquire(); ok || err != nil {
					t.Errorf("with unfinished work the stream was leased: %v, %v", ok, err)
				}
				end()
				var e *weir.Error
				if err := <-released; !errors.Is(err, errCause) || !errors.As(err, &e) || e.Stream != "host:0/0" {
					t.Errorf("Release answers %v; expected the failure, with its stream", err)
				}
				if !ran {
					t.Error("the stream was given back before its work was done")
				}
				r.release(r.stream(0))
			})
		})
	}
}

// TestAStreamThatCanNeitherBeRecordedNorWaitedForStaysPending until all that it
// was given is done.
func TestAStreamThatCanNeitherBeRecordedNorWaitedForStaysPending(t *testing.T) {
	for _, asTail := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, 1, 2)
			var tail stream.Completion
			defer func() {
				r.close()
				expectDone(t, "the tail, after Close", tail, true)
			}()
			s, other := r.stream(0), r.stream(0)
			end := r.stall(s)
			r.plan.FailNth(fault.StreamRecord, 1, errCause)
			r.plan.FailNth(fault.StreamSynchronize, 1, errors.New("nor that"))
			if asTail { // as an access scope does before the release
				c, err := s.Tail()
				if !errors.Is(err, errCause) {
					t.Errorf("Tail answers %v; expected the failure", err)
				}
				tail = c
				expectDone(t, "the tail", c, false)
				r.plan.FailNth(fault.StreamSynchronize, 1, errCause)
				if err := c.Wait(context.Background()); !errors.Is(err, errCause) {
					t.Errorf("Wait answers %v; expected why it could not wait", err)
				}
				r.plan.FailNth(fault.StreamQuery, 1, errCause)
				if _, err := c.Done(); !errors.Is(err, errCause) {
					t.Errorf("Done answers %v; expected the failure", err)
				}
				ctx, cancel := context.WithCancel(context.Background())
				waits := []func() error{
					func() error { return other.Wait(c) },
					func() error { return c.Wait(context.Background()) },
					func() error { return c.Wait(ctx) },
				}
				answers := make(chan error)
				for _, wait := range waits {
					go func() { answers <- wait() }()
				}
				synctest.Wait()
				select {
				case err := <-answers:
					t.Errorf("a wait for the tail answered %v before the work was done", err)
				default:
				}
				defer func() {
					for range waits {
						if err := <-answers; err != nil {
							t.Error(err)
						}
					}
					cancel()
					expectDone(t, "the tail, ended", c, true)
					r.release(other)
				}()
				r.release(s)
			} else {
				if err := s.Release(); !errors.Is(err, errCause) {
					t.Errorf("Release answers %v; expected the failure", err)
				}
				r.release(other)
				if again, ok, err := r.pools[0].TryAcquire(); !ok || err != nil {
					t.Fatalf("the other stream is not idle: %v, %v", ok, err)
				} else {
					defer r.release(again)
				}
			}
			if _, ok, err := r.pools[0].TryAcquire(); ok || err != nil {
				t.Errorf("with unfinished work the stream was leased: %v, %v", ok, err)
			}
			end()
			synctest.Wait()
			r.release(r.stream(0))
		})
	}
}

// TestARecordThatFailsIsTriedAgain: what it was to capture is not forgotten.
func TestARecordThatFailsIsTriedAgain(t *testing.T) {
	inBubble(t, 1, 1, func(t *testing.T, r *rig) {
		s := r.stream(0)
		end := r.stall(s)
		r.plan.FailNth(fault.StreamRecord, 1, errCause)
		if _, err := s.Record(); !errors.Is(err, errCause) {
			t.Errorf("Record answers %v; expected the failure", err)
		}
		r.release(s)
		if _, ok, err := r.pools[0].TryAcquire(); ok || err != nil {
			t.Errorf("with unfinished work the stream was leased: %v, %v", ok, err)
		}
		end()
		synctest.Wait()
		r.release(r.stream(0))
	})
}

// TestAWaitThatFailsIsReported and the stream goes on.
func TestAWaitThatFailsIsReported(t *testing.T) {
	inBubble(t, 1, 2, func(t *testing.T, r *rig) {
		a, b := r.stream(0), r.stream(0)
		end := r.stall(a)
		c := r.record(a)
		r.plan.FailNth(fault.StreamWait, 1, errCause)
		if err := b.Wait(c); !errors.Is(err, errCause) {
			t.Errorf("Wait answers %v; expected the failure", err)
		}
		r.wait(b, c)
		end()
		r.plan.FailNth(fault.EventQuery, 1, errCause)
		if _, err := c.Done(); !errors.Is(err, errCause) {
			t.Errorf("Done answers %v; expected the failure", err)
		}
		r.settle(a)
		expectDone(t, "the work", c, true)
		r.release(a)
		r.release(b)
	})
}
