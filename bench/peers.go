package bench

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/runtime"
)

//go:embed peers.py
var peersScript []byte

const (
	// peersProtocol is what peers.py must speak.
	peersProtocol = 1
	// peersPatience is how long an answer may take: importing a library and the
	// first use of a GPU take most of a minute on a busy machine.
	peersPatience = 3 * time.Minute
)

// Peers are other libraries that measure the same work, in a Python process of
// their own that lives until Close. It is for one goroutine.
type Peers struct {
	device    runtime.Device
	sought    []string // libraries that mean something on the device
	python    string
	folder    string // of the script and of arrays on their way
	patience  time.Duration
	process   *peerProcess // nil when it has ended; the next case starts another
	hello     peerHello
	givenUp   map[string]error // libraries that ended the process or did not answer
	whyAbsent error            // why there is no Python
}

// peerHello is the first line of peers.py.
type peerHello struct {
	Protocol  int               `json:"protocol"`
	Python    string            `json:"python"`
	Libraries map[string]string `json:"libraries"`
}

// peerAnswer is a further line.
type peerAnswer struct {
	Variant string    `json:"variant"`
	Device  string    `json:"device"`
	Seconds []float64 `json:"seconds"`
	Results []string  `json:"results"` // names of files in the request's folder
	Error   string    `json:"error"`
	Done    bool      `json:"done"`
}

// PeerResult is what was measured of a peer: the median of its rounds and their
// quartiles, in the case's unit, or why there are none.
type PeerResult struct {
	Name             string // library and variant, as "torch loop"
	Value, Low, High float64
	Values           []float64 // of the rounds
	Err              error
}

// OpenPeers looks for libraries that can do d's work in Python: python, a path or a
// name to look up, or python3 where it is "". Without python3 there are no peers
// and no error; a python that was named and does not start is an ErrArgument.
func OpenPeers(ctx context.Context, d runtime.Device, python string) (*Peers, error) {
	return openPeers(ctx, d, python, peersScript, peersPatience)
}

func openPeers(ctx context.Context, d runtime.Device, python string, script []byte, patience time.Duration) (*Peers, error) {
	p := &Peers{device: d, sought: []string{"torch", "cupy", "jax"}, python: cmp.Or(python, "python3"), patience: patience, givenUp: map[string]error{}}
	if d.IsHost() {
		p.sought = []string{"numpy", "torch", "jax"}
	}
	var err error
	if p.folder, err = os.MkdirTemp("", "weir-peers-"); err != nil {
		return nil, err
	}
	if err := os.WriteFile(p.script(), script, 0o600); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	if err := p.start(ctx); err != nil {
		p.whyAbsent = err
		if canceled := context.Cause(ctx); canceled != nil {
			return nil, errors.Join(canceled, p.Close())
		}
		if python != "" {
			return nil, errors.Join(weir.Argf("bench.OpenPeers", "%s: %v; expected a Python 3", python, err), p.Close())
		}
	}
	if len(p.hello.Libraries) == 0 {
		p.end() // nobody will ask it anything
	}
	return p, nil
}

func (p *Peers) script() string { return filepath.Join(p.folder, "peers.py") }

// String says which libraries were found and looked for.
func (p *Peers) String() string {
	if p.whyAbsent != nil {
		return fmt.Sprintf("none, since %s does not start: %v; looked for %s", p.python, p.whyAbsent, strings.Join(p.sought, ", "))
	}
	var found, missing []string
	for _, name := range p.sought {
		if v, ok := p.hello.Libraries[name]; ok {
			found = append(found, name+" "+v)
		} else {
			missing = append(missing, name)
		}
	}
	text := cmp.Or(strings.Join(found, ", "), "none") + " in Python " + p.hello.Python
	if len(missing) > 0 {
		text += "; not there: " + strings.Join(missing, ", ")
	}
	return text
}

// Close ends the process and removes what was on its way.
func (p *Peers) Close() error {
	p.end()
	return os.RemoveAll(p.folder)
}

// measure has every library that is there do the work. An error is one of the
// run: work that is not well formed, a full disk, the end of ctx. What is wrong
// with a peer is in its result.
func (p *Peers) measure(ctx context.Context, w *PeerWork, e effort, u Unit) (all []PeerResult, err error) {
	if len(p.hello.Libraries) == 0 {
		return nil, nil
	}
	folder, err := os.MkdirTemp(p.folder, "case-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	r, sizes, err := w.request(e, folder)
	if err != nil {
		return nil, err
	}
	if r.Device = "cuda"; p.device.IsHost() {
		r.Device = "host"
	}
	r.Ordinal = p.device.Ordinal()
	for _, name := range p.sought {
		if _, ok := p.hello.Libraries[name]; !ok {
			continue
		}
		if why := p.givenUp[name]; why != nil {
			all = append(all, PeerResult{Name: name, Err: fmt.Errorf("given up: %w", why)})
			continue
		}
		r.Library = name
		err := p.ask(ctx, r, func(a peerAnswer) {
			all = append(all, p.judge(a, r, w, sizes, u))
		})
		if canceled := context.Cause(ctx); canceled != nil {
			return nil, canceled
		}
		if err != nil {
			p.givenUp[name] = err
			all = append(all, PeerResult{Name: name, Err: err})
		}
	}
	return all, nil
}

// ask sends a request and passes on the answers. After an error the process is
// gone.
func (p *Peers) ask(ctx context.Context, r *request, answered func(peerAnswer)) error {
	if p.process == nil {
		if err := p.start(ctx); err != nil {
			return err
		}
	}
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := p.process.send(ctx, append(text, '\n'), p.patience); err != nil {
		return p.fail(err)
	}
	for {
		var a peerAnswer
		if err := p.receive(ctx, &a); err != nil {
			return err
		}
		if a.Done {
			return nil
		}
		answered(a)
	}
}

// judge makes an answer a result, when it is of the right device and right.
func (p *Peers) judge(a peerAnswer, of *request, w *PeerWork, sizes []int64, u Unit) PeerResult {
	r := PeerResult{Name: strings.TrimSpace(of.Library + " " + a.Variant)}
	if r.Err = p.check(a, of.Folder, w, sizes); r.Err != nil {
		return r
	}
	for _, s := range a.Seconds {
		r.Values = append(r.Values, u.fromSeconds(s))
	}
	r.Value, r.Low, r.High = quantile(r.Values, 0.5), quantile(r.Values, 0.25), quantile(r.Values, 0.75)
	return r
}

func (p *Peers) check(a peerAnswer, folder string, w *PeerWork, sizes []int64) error {
	if a.Error != "" {
		return errors.New(a.Error)
	}
	if name := p.device.Capabilities().Name; !p.device.IsHost() && a.Device != name {
		return wrong("it ran on %q; expected %q", a.Device, name)
	}
	if len(a.Results) != len(sizes) {
		return wrong("it answered %d results; expected %d", len(a.Results), len(sizes))
	}
	if len(a.Seconds) == 0 || slices.Min(a.Seconds) <= 0 {
		return wrong("its rounds took %v s; expected positive times", a.Seconds)
	}
	var results [][]byte
	for i, file := range a.Results {
		file = filepath.Join(folder, filepath.Base(file))
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if int64(len(data)) != sizes[i] {
			return wrong("result %d has %d bytes; expected %d", i, len(data), sizes[i])
		}
		if err := os.Remove(file); err != nil {
			return err
		}
		results = append(results, data)
	}
	return w.Check(results)
}

// start starts the process and reads its first line.
func (p *Peers) start(ctx context.Context) error {
	process, err := startPeerProcess(p.python, p.script(), p.sought)
	if err != nil {
		return err
	}
	p.process = process
	var h peerHello
	if err := p.receive(ctx, &h); err != nil {
		return err
	}
	if h.Protocol != peersProtocol {
		return p.fail(fmt.Errorf("it speaks protocol %d; expected %d", h.Protocol, peersProtocol))
	}
	p.hello = h
	return nil
}

// receive reads a line into v.
func (p *Peers) receive(ctx context.Context, v any) error {
	text, err := p.process.receive(ctx, p.patience)
	if err != nil {
		return p.fail(err)
	}
	if err := json.Unmarshal(text, v); err != nil {
		return p.fail(fmt.Errorf("it answered %.60q; expected a line of JSON", text))
	}
	return nil
}

// fail ends the process and answers err, or if it had ended by itself how.
func (p *Peers) fail(err error) error {
	if said := p.end(); said != "" && errors.Is(err, io.EOF) {
		return errors.New(said)
	}
	return err
}

func (p *Peers) end() (said string) {
	if p.process != nil {
		said = p.process.kill()
		p.process = nil
	}
	return said
}

// peerProcess is a child with a process group of its own.
type peerProcess struct {
	command *exec.Cmd
	in      io.WriteCloser
	lines   chan []byte // of standard output; closed at its end
	said    lastLine    // of standard error
}

func startPeerProcess(python, script string, libraries []string) (*peerProcess, error) {
	p := &peerProcess{command: exec.Command(python, append([]string{script}, libraries...)...), lines: make(chan []byte)}
	ownGroup(p.command)
	p.command.Stderr = &p.said
	p.command.WaitDelay = time.Second // for what a child of the child holds open
	p.command.Env = os.Environ()
	if _, set := os.LookupEnv("XLA_PYTHON_CLIENT_PREALLOCATE"); !set {
		p.command.Env = append(p.command.Env, "XLA_PYTHON_CLIENT_PREALLOCATE=false") // or JAX takes most of a GPU's memory
	}
	var err error
	if p.in, err = p.command.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.lines)
		for in := bufio.NewReader(out); ; {
			text, err := in.ReadBytes('\n')
			if err != nil {
				return
			}
			p.lines <- text
		}
	}()
	return p, nil
}

// send writes a line, in the time that an answer may take.
func (p *peerProcess) send(ctx context.Context, line []byte, patience time.Duration) error {
	sent := make(chan error, 1) // written once, also when nobody waits any more: kill closes the pipe
	go func() {
		_, err := p.in.Write(line)
		sent <- err
	}()
	select {
	case err := <-sent:
		if err != nil {
			return io.EOF // it no longer reads
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(patience):
		return fmt.Errorf("it did not take a request within %v", patience)
	}
}

// receive answers a line, or io.EOF when the process has ended.
func (p *peerProcess) receive(ctx context.Context, patience time.Duration) ([]byte, error) {
	select {
	case text, ok := <-p.lines:
		if !ok {
			return nil, io.EOF
		}
		return text, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-time.After(patience):
		return nil, fmt.Errorf("it did not answer within %v", patience)
	}
}

// kill ends the process and what it started, and says how it ended.
func (p *peerProcess) kill() (how string) {
	p.in.Close()
	killGroup(p.command)
	err := p.command.Wait()
	for range p.lines { // let the reader end
	}
	how = "it ended"
	if err != nil {
		how += ": " + err.Error()
	}
	if line := p.said.String(); line != "" {
		how += ": " + line
	}
	return how
}

// lastLine keeps the last line that is written to it, or the end of a long one.
type lastLine struct {
	mu   sync.Mutex
	text []byte
}

func (l *lastLine) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	const longest = 1000
	l.text = bytes.TrimLeft(append(l.text, text...), "\n")
	if end := bytes.TrimRight(l.text, "\n"); bytes.Contains(end, []byte("\n")) {
		l.text = l.text[bytes.LastIndexByte(end, '\n')+1:]
	}
	l.text = l.text[max(0, len(l.text)-longest):]
	return len(text), nil
}

func (l *lastLine) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.TrimSpace(string(l.text))
}
