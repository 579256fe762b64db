package main

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestBarIsDrawnOnlyWhenWorkLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var screen screen
		b := startBar(&screen, 10, 300*time.Millisecond)
		b.submitted.Store(7)
		<-time.After(299 * time.Millisecond)
		b.stop()
		if got := screen.String(); got != "" {
			t.Errorf("after 299 ms the screen has %q; expected nothing", got)
		}
	})
}

func TestBarCountsStepsThatAreDoneAndGoesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var screen screen
		b := startBar(&screen, 10, 300*time.Millisecond)
		b.submitted.Store(1)
		<-time.After(301 * time.Millisecond)
		if got := screen.line(); !strings.HasPrefix(got, "contracting   0% |") || !strings.Contains(got, "(0/10)") {
			t.Errorf("with one step submitted the line is %q; expected 0 of 10", got)
		}
		b.submitted.Store(7)
		<-time.After(redraw)
		if got := screen.line(); !strings.HasPrefix(got, "contracting  50% |") || !strings.Contains(got, "(5/10)") {
			t.Errorf("with seven steps submitted, two of them under way, the line is %q; expected 5 of 10", got)
		}
		b.stop()
		if got := screen.line(); strings.TrimSpace(got) != "" {
			t.Errorf("afterwards the line is %q; expected it empty", got)
		}
	})
}

// screen is what was written, safe for concurrent use.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// line is what a terminal shows: what follows the last return that something
// follows.
func (s *screen) line() string {
	text := strings.TrimRight(s.String(), "\r")
	return text[strings.LastIndex(text, "\r")+1:]
}
