package runtime_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/runtime"
)

// sessionService says in its Drain that something of it still runs.
type sessionService struct{ service }

func (s sessionService) Drain() error {
	if slices.Contains(s.log.lines, "drain session") { // there is nothing new to say
		return s.service.Drain()
	}
	if _, err := runtime.Default(); err != nil {
		return err
	}
	return errors.Join(s.service.Drain(), &weir.Error{Op: "a session", Message: "a job still runs", Err: weir.ErrLeak})
}

func TestSessionsAreDrainedWhileDevicesAreFoundAndClosedBeforeProviders(t *testing.T) {
	family, _ := hosts()
	rt := must(runtime.StartFamilies([]driver.Family{family}, runtime.Options{}))
	r := resources("host:0")
	l := &log{}
	must(runtime.Use(r, runtime.StageProvider, func(*runtime.Resources) (oneProvider, error) { return oneProvider{service{"provider", l}}, nil }))
	must(runtime.Use(r, runtime.StageSession, func(*runtime.Resources) (sessionService, error) { return sessionService{service{"session", l}}, nil }))
	must(runtime.Use(r, runtime.StageProvider, func(*runtime.Resources) (twoProvider, error) { return twoProvider{service{"later", l}}, nil }))
	err := rt.Close()
	refuses(t, err, weir.ErrLeak, "a session: a job still runs")
	want := []string{"drain session", "drain later", "drain session", "drain provider", "close session", "close later", "close provider"}
	if !slices.Equal(l.lines, want) {
		t.Errorf("got %v; expected %v", l.lines, want)
	}
}
