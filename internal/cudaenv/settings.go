package cudaenv

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/csrc/kit"
)

// Variable is one variable of the environment. Meaning is a line for people.
type Variable struct{ Name, Value, Meaning string }

// Settings is an environment in which -tags cuda builds.
type Settings struct {
	Toolkit   Toolkit
	Kit       kit.Kit
	Variables []Variable
}

// Environ is environ, lines as os.Environ has them, with the variables set.
func (s *Settings) Environ(environ []string) []string {
	out := append([]string{}, environ...)
	for _, v := range s.Variables {
		out = append(out, v.Name+"="+v.Value)
	}
	return out
}

// goEnv is what the go command says of a folder. Its flags hold the user's
// environment, go env -w, and Go's defaults.
type goEnv struct {
	GOOS, GOARCH, GOMOD, CC string
	CGO_CFLAGS, CGO_LDFLAGS string
}

// Find computes the settings for builds in the folder dir. environ, lines as
// os.Environ has them, says what is set now; flags that are set there stay,
// after Weir's own, and settings found once are found again.
func Find(ctx context.Context, dir string, environ []string) (*Settings, error) {
	getenv := lookup(environ)
	g, err := askGo(ctx, dir, environ)
	if err != nil {
		return nil, err
	}
	if g.GOOS != "linux" || g.GOARCH != "amd64" && g.GOARCH != "arm64" {
		return nil, notSupported("-tags cuda builds for linux/amd64 and linux/arm64; got %s/%s", g.GOOS, g.GOARCH)
	}
	toolkit, err := findToolkit(getenv, usual)
	if err != nil {
		return nil, err
	}
	parent := cache(getenv)
	if checkout := checkoutOf(g.GOMOD); checkout != "" {
		parent = filepath.Join(checkout, "build", "csrc")
	}
	if parent == "" {
		return nil, notSupported("there is no folder for a cache; set XDG_CACHE_HOME or HOME")
	}
	compiler, err := split(g.CC)
	if err != nil {
		return nil, err
	}
	k, err := kit.Make(ctx, parent, g.GOARCH, compiler)
	if err != nil {
		return nil, &weir.Error{Op: "cudaenv.Find", Message: "-tags cuda needs a C compiler", Err: err}
	}

	cflags, err := flags(g.CGO_CFLAGS, "-I"+k.Include(), "-I"+toolkit.Include())
	if err != nil {
		return nil, err
	}
	// The loader needs dlopen, which older C libraries keep apart.
	ldflags, err := flags(g.CGO_LDFLAGS, "-L"+k.Lib(), "-Wl,--push-state,--no-as-needed,-ldl,--pop-state")
	if err != nil {
		return nil, err
	}
	libraries := getenv("WEIR_CUDA_LIBRARY_PATH")
	if libraries == "" {
		libraries = toolkit.Lib()
	}
	return &Settings{
		Toolkit: toolkit,
		Kit:     k,
		Variables: []Variable{
			{"CGO_ENABLED", "1", "cgo, which builds with -tags cuda need"},
			{"CGO_CFLAGS", cflags, "flags of their C compiler, for " + toolkit.String()},
			{"CGO_LDFLAGS", ldflags, "flags of their linker"},
			{"WEIR_CUDA_LIBRARY_PATH", libraries, "folders, separated by colons, in which they look for CUDA's libraries first"},
		},
	}, nil
}

func askGo(ctx context.Context, dir string, environ []string) (*goEnv, error) {
	cmd := exec.CommandContext(ctx, "go", "env", "-json", "GOOS", "GOARCH", "GOMOD", "CC", "CGO_CFLAGS", "CGO_LDFLAGS")
	cmd.Dir, cmd.Env = dir, environ
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil, &weir.Error{Op: "cudaenv.Find", Message: "go env: " + strings.TrimSpace(string(exit.Stderr)), Err: err}
	}
	if err != nil {
		return nil, &weir.Error{Op: "cudaenv.Find", Message: "-tags cuda needs the go command", Err: err}
	}
	g := new(goEnv)
	if err := json.Unmarshal(out, g); err != nil {
		return nil, &weir.Error{Op: "cudaenv.Find", Message: "go env", Err: err}
	}
	return g, nil
}

var ours = regexp.MustCompile(`(?m)^module\s+github\.com/weirgo/weir\s*$`)

// checkoutOf is the root of Weir's own checkout, if gomod is its go.mod, else "".
func checkoutOf(gomod string) string {
	text, err := os.ReadFile(gomod)
	if err != nil || !ours.Match(text) {
		return ""
	}
	return filepath.Dir(gomod)
}

// flags puts Weir's flags before those that are set, once.
func flags(set string, first ...string) (string, error) {
	joined, err := join(first)
	if err != nil {
		return "", err
	}
	if set == joined || strings.HasPrefix(set, joined+" ") {
		return set, nil
	}
	return strings.TrimSpace(joined + " " + set), nil
}

// lookup answers variables of environ, of which the last counts.
func lookup(environ []string) func(string) string {
	values := map[string]string{}
	for _, line := range environ {
		name, value, _ := strings.Cut(line, "=")
		values[name] = value
	}
	return func(name string) string { return values[name] }
}
