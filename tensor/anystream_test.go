package tensor

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	goruntime "runtime"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirgo/weir/buffer"
	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/host"
	"github.com/weirgo/weir/internal/hostblas"
	leases "github.com/weirgo/weir/internal/lease"
	"github.com/weirgo/weir/runtime"
)

// side is the extent of every matrix of a program; its arrays have twice that
// and lie apart or overlap as views.
const side = 3

// instruction is one operation of a program, on arrays by their places in the list of
// all that the program has made, modulo its length.
type instruction struct {
	do      string
	a, b, c int
	slow    int // how often device work of one's own gives way to others
}

var instructions = map[string]func(*machine, instruction) (*Array, error){
	"from": func(m *machine, s instruction) (*Array, error) {
		data := make([]complex128, 4*side*side)
		for i := range data {
			data[i] = complex(m.random.NormFloat64(), m.random.NormFloat64())
		}
		return From(m.ctx, data, 2*side, 2*side)
	},
	"block": func(m *machine, s instruction) (*Array, error) {
		a := m.at(s.a)
		if a.Shape()[0] == side {
			return a.Conj(), nil
		}
		i, j := s.b%(side+1), s.c%(side+1)
		if s.slow%2 == 0 {
			return a.Slice(Steps(i%2, End, 2), Span(j, j+side))
		}
		return a.Slice(Span(i, i+side), Span(j, j+side))
	},
	"transpose": func(m *machine, s instruction) (*Array, error) { return m.at(s.a).T(), nil },
	"copy":      func(m *machine, s instruction) (*Array, error) { return Copy(m.ctx, m.at(s.a)) },
	"matmul":    func(m *machine, s instruction) (*Array, error) { return MatMul(m.ctx, m.at(s.a), m.at(s.b)) },
	"einsum": func(m *machine, s instruction) (*Array, error) {
		specs := []string{"ij,jk,kl->il", "ij,kj,ik->ki", "ji,ij,jk->kj"}
		return Einsum(m.ctx, specs[s.slow%len(specs)], m.at(s.a), m.at(s.b), m.at(s.c))
	},
	"to": func(m *machine, s instruction) (*Array, error) {
		return To(m.ctx, m.at(s.a), must(runtime.Get(fmt.Sprintf("host:%d", s.b%2))))
	},
	"gemm into": func(m *machine, s instruction) (*Array, error) {
		return nil, GemmInto(m.ctx, 0.5, m.at(s.a), m.at(s.b), complex(0.25, 0.5), m.at(s.c))
	},
	"copy into": func(m *machine, s instruction) (*Array, error) { return nil, CopyInto(m.ctx, m.at(s.a), m.at(s.b)) },
	"change":    func(m *machine, s instruction) (*Array, error) { return nil, change(m.ctx, m.at(s.a), s.slow) },
	"free":      func(m *machine, s instruction) (*Array, error) { return nil, m.at(s.a).Free() },
}

// change replaces every element x by x/2 + 1 in place, with device work that
// lets other work run before it and half-way.
func change(ctx context.Context, a *Array, slow int) error {
	return onStream(ctx, a, func(x *operation) error {
		p := x.acc.Write(a.Buffer())
		return x.submit(func(s driver.Stream) error {
			return s.Call(func() {
				memory := buffer.Elements[complex128](p, 4*side*side)
				for i := range a.Shape()[0] {
					for range slow {
						goruntime.Gosched()
					}
					for j := range a.Shape()[1] {
						e := &memory[a.Offset()+i*a.Strides()[0]+j*a.Strides()[1]]
						*e = *e/2 + 1
					}
				}
			})
		})
	})
}

// machine runs one program.
type machine struct {
	ctx    context.Context
	random *rand.Rand
	arrays []*Array
}

func (m *machine) at(i int) *Array { return m.arrays[i%len(m.arrays)] }

// play runs a program with pools of that many streams, which hand them out as
// first says, and answers what went wrong at each step and all elements at the
// end.
func play(t *rapid.T, program []instruction, streams int, first func(int) int) (outcome []string) {
	leases.First = first
	defer func() { leases.First = nil }()
	family := host.New(host.Options{Devices: 2, HandOver: true, BLAS: hostblas.Open("gonum")})
	rt, err := runtime.StartFamilies([]driver.Family{family}, runtime.Options{ResourceOptions: runtime.ResourceOptions{Streams: streams}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, free := Scope(context.Background())
	defer func() {
		if err := errors.Join(free(), rt.Close()); err != nil {
			t.Errorf("with %d streams: %v", streams, err)
		}
	}()
	m := &machine{ctx: ctx, random: rand.New(rand.NewPCG(1, 2))}
	for _, s := range append([]instruction{{do: "from"}, {do: "from"}}, program...) {
		a, err := instructions[s.do](m, s)
		if a != nil {
			m.arrays = append(m.arrays, a)
		}
		outcome = append(outcome, fmt.Sprint(s.do, ": ", err))
	}
	for i, a := range m.arrays {
		data, err := Data[complex128](ctx, a)
		outcome = append(outcome, fmt.Sprintf("array %d: %x %v", i, data, err)) // %x of a float is all of its bits
	}
	return outcome
}

// TestResultsDoNotDependOnWhichStreamsWereGiven, nor on how many there are: a
// pool of one stream runs everything in the order of the program.
func TestResultsDoNotDependOnWhichStreamsWereGiven(t *testing.T) {
	names := make([]string, 0, len(instructions))
	for name := range instructions {
		names = append(names, name)
	}
	slices.Sort(names)
	used := map[int]bool{}
	rapid.Check(t, func(t *rapid.T) {
		place := rapid.IntRange(0, 40)
		program := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) instruction {
			return instruction{rapid.SampledFrom(names).Draw(t, "do"), place.Draw(t, "a"), place.Draw(t, "b"), place.Draw(t, "c"),
				rapid.IntRange(0, 50).Draw(t, "slow")}
		}), 1, 40).Draw(t, "program")
		want := play(t, program, 1, nil)
		for _, streams := range []int{1, 2, 3, 8} {
			random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
			var mu sync.Mutex // guards random and used
			got := play(t, program, streams, func(n int) int {
				mu.Lock()
				defer mu.Unlock()
				i := random.IntN(n)
				used[i] = true
				return i
			})
			for i := range want {
				if got[i] != want[i] {
					t.Errorf("with %d streams\n%s\nexpected\n%s", streams, got[i], want[i])
				}
			}
		}
	})
	if len(used) != 8 {
		t.Errorf("the pools were asked to begin at %v; expected each of 8 places", used)
	}
}
