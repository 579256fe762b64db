package tensor

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/weirgo/weir"
)

// takers are the package's exported functions, and methods of other types, that
// take arrays and answer an error.
var takers = []any{
	Add, AddInto, AsType, Contiguous, Contract, Copy, CopyInto, Data[float64], DataInto[float64], Einsum,
	EinsumWith, Format, GemmBatchInto, GemmInto, Item[float64], MatMul, Network, PlanEinsum, PlanNetwork, RandomizedSVD, Reduce, Reshape,
	SVD, SaveNPY, SaveNPZ, Scale, SelectK, SetData[float64], SingularValues, To, (*Arrays).Like, (*Plan).Run,
}

// takerName is a function's name as its declaration has it: Copy, (*Plan).Run.
func takerName(f any) string {
	name := goruntime.FuncForPC(reflect.ValueOf(f).Pointer()).Name()
	name = name[strings.LastIndex(name, "/tensor.")+len("/tensor."):]
	name, _, _ = strings.Cut(name, "[")
	return name
}

// mentions says whether a type is made of one of the names.
func mentions(e ast.Node, names ...string) (found bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			for _, name := range names {
				found = found || id.Name == name
			}
		}
		return true
	})
	return found
}

func TestEveryFunctionThatTakesArraysIsAmongThoseThatTestsKnow(t *testing.T) {
	known := map[string]bool{"Keep": true} // answers no error
	for _, f := range takers {
		known[takerName(f)] = true
	}
	sources := must(filepath.Glob("*.go"))
	if len(sources) == 0 {
		t.Skip("the package's source is not here")
	}
	for _, path := range sources {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file := must(parser.ParseFile(token.NewFileSet(), path, nil, 0))
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || !f.Name.IsExported() || !mentions(f.Type.Params, "Array", "NPZ") {
				continue
			}
			name := f.Name.Name
			if f.Recv != nil {
				receiver := f.Recv.List[0].Type
				star, pointer := receiver.(*ast.StarExpr)
				if !pointer || !ast.IsExported(star.X.(*ast.Ident).Name) {
					continue
				}
				name = "(*" + star.X.(*ast.Ident).Name + ")." + name
			}
			if !known[name] {
				t.Errorf("%s takes arrays; add it to takers, whose tests check that it refuses nil and the zero Array", name)
			}
			delete(known, name)
		}
	}
	for name := range known {
		t.Errorf("%s is gone; take it out of takers", name)
	}
}

// nones are what is no array, and how messages call it.
var nones = map[string]*Array{"nil": nil, "the zero Array": {}}

// refusesNone checks an error's sentinel and how it ends.
func refusesNone(t *testing.T, name, none string, err error) {
	t.Helper()
	var e *weir.Error
	if !errors.Is(err, weir.ErrArgument) || !errors.As(err, &e) || e.Op == "" ||
		!strings.HasSuffix(err.Error(), " is "+none+"; expected an array that a constructor or an operation made") {
		t.Errorf("%s of %s answers %v", name, none, err)
	}
}

// TestEveryFunctionThatTakesArraysRefusesWhatIsNone in each of its places.
func TestEveryFunctionThatTakesArraysRefusesWhatIsNone(t *testing.T) {
	ctx := start(t)
	good := must(Zeros(ctx, Float64, 2, 2))
	plan := must(PlanEinsum(EinsumOptions{}, "ij,jk->ik", good, good))
	for _, f := range takers {
		name, v := takerName(f), reflect.ValueOf(f)
		for none, bad := range nones {
			places := 0
			for k := 0; k == 0 || k < places; k++ {
				// next answers good arrays, and bad in the k-th place.
				places = 0
				next := func() *Array {
					if places++; places-1 == k {
						return bad
					}
					return good
				}
				var args []reflect.Value
				for i := range v.Type().NumIn() {
					switch in := v.Type().In(i); {
					case in == reflect.TypeFor[context.Context]():
						args = append(args, reflect.ValueOf(ctx))
					case in == reflect.TypeFor[*Plan]():
						args = append(args, reflect.ValueOf(plan))
					case in == reflect.TypeFor[*Array]():
						args = append(args, reflect.ValueOf(next()))
					case in == reflect.TypeFor[NPZ]():
						args = append(args, reflect.ValueOf(NPZ{"x": next()}))
					case in == reflect.TypeFor[[]*Array]():
						args = append(args, reflect.ValueOf([]*Array{next(), next()}))
					default:
						args = append(args, reflect.Zero(in))
					}
				}
				if places == 0 {
					t.Fatalf("%s takes no array", name)
				}
				call := v.Call
				if v.Type().IsVariadic() {
					call = v.CallSlice
				}
				out := call(args)
				err, _ := out[len(out)-1].Interface().(error)
				refusesNone(t, name, none, err)
				for _, o := range out[:len(out)-1] {
					if !o.IsZero() {
						t.Errorf("%s of %s answers %v besides its error", name, none, o)
					}
				}
			}
		}
	}
}

// TestEveryMethodOfWhatIsNoArrayRefusesItOrAnswersItsZeroValue.
func TestEveryMethodOfWhatIsNoArrayRefusesItOrAnswersItsZeroValue(t *testing.T) {
	for none, bad := range nones {
		v := reflect.ValueOf(bad)
		for i := range v.NumMethod() {
			name, m := v.Type().Method(i).Name, v.Method(i)
			var args []reflect.Value
			for k := range m.Type().NumIn() {
				args = append(args, reflect.Zero(m.Type().In(k)))
			}
			call := m.Call
			if m.Type().IsVariadic() {
				call = m.CallSlice
			}
			out := call(args)
			last := out[len(out)-1]
			switch {
			case name == "String":
				if want := map[string]string{"nil": "nil array", "the zero Array": "zero Array"}[none]; last.String() != want {
					t.Errorf("%s is %q; expected %q", none, last, want)
				}
			case name == "Free": // frees nothing
				if !last.IsZero() {
					t.Errorf("Free of %s answers %v", none, last)
				}
			case last.Type() == reflect.TypeFor[error]():
				err, _ := last.Interface().(error)
				refusesNone(t, name, none, err)
			case last.Type() == reflect.TypeFor[*Array]():
				if got := last.Interface().(*Array); got != bad {
					t.Errorf("%s of %s answers %v; expected it as it is", name, none, got)
				}
			default:
				if !last.IsZero() {
					t.Errorf("%s of %s answers %v; expected the zero value", name, none, last)
				}
			}
		}
		if got := Keep(t.Context(), bad); got != bad {
			t.Errorf("Keep of %s answers %v", none, got)
		}
	}
}
