package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"unsafe"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/dtype"
)

// PeerWork is what a case computes, as data that other libraries are given: matrix
// products, of inputs and of earlier products.
type PeerWork struct {
	DType  dtype.DType
	Inputs []PeerInput
	// Products are pairs of operands: i is input i, and len(Inputs)+k product k.
	Products [][2]int
	// Results are the indices of the products that are checked; nil is all. They and
	// those that no other takes are what a peer has at the end of a pass.
	Results []int
	// Operations is how many of the case's operations all Products together are;
	// 0 is one.
	Operations int
	// Check compares the elements of Results, row-major as the inputs are, with
	// what Weir, or the floor that agrees with it, computed.
	Check func(results [][]byte) error
}

// PeerInput is a matrix, or with more extents a stack of them, row-major in the
// machine's byte order.
type PeerInput struct {
	Shape []int
	Data  []byte
}

// peerInput is an input of elements, which must not change while it is in use.
func peerInput[T element](data []T, shape ...int) PeerInput {
	return PeerInput{shape, unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(data))), uintptr(len(data))*unsafe.Sizeof(*new(T)))}
}

// peerCheck is the Check that compares each result with what want answers for it;
// terms is as near has it.
func peerCheck[T element](want func(i int) (elements []T, terms int, err error)) func([][]byte) error {
	return func(results [][]byte) error {
		for i, r := range results {
			w, terms, err := want(i)
			if err != nil {
				return err
			}
			if uintptr(len(r)) != uintptr(len(w))*unsafe.Sizeof(*new(T)) {
				return wrong("result %d has %d bytes; expected %d elements", i, len(r), len(w))
			}
			have := unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(r))), len(w))
			if err := near(have, w, terms); err != nil {
				return fmt.Errorf("result %d: %w", i, err)
			}
		}
		return nil
	}
}

// request is a case as peers.py reads it.
type request struct {
	Library    string        `json:"library"`
	Device     string        `json:"device"` // "cuda" or "host"
	Ordinal    int           `json:"ordinal"`
	DType      string        `json:"dtype"`
	Inputs     []inputFile   `json:"inputs"`
	Products   [][2]int      `json:"products"`
	Results    []int         `json:"results"`
	Operations int           `json:"operations"`
	Effort     requestEffort `json:"effort"`
	Folder     string        `json:"folder"` // for results
}

type inputFile struct {
	File  string `json:"file"`
	Shape []int  `json:"shape"`
}

// requestEffort is an effort, in seconds.
type requestEffort struct {
	Least  int     `json:"least"`
	Most   int     `json:"most"`
	Round  float64 `json:"round"`
	Budget float64 `json:"budget"`
}

// request checks the work, writes its inputs to folder and answers what is asked
// of every library, with the sizes of the results in bytes.
func (w *PeerWork) request(e effort, folder string) (*request, []int64, error) {
	results := w.Results
	if results == nil {
		for k := range w.Products {
			results = append(results, k)
		}
	}
	sizes, err := w.sizes(results)
	if err != nil {
		return nil, nil, err
	}
	r := &request{DType: w.DType.String(), Products: w.Products, Results: results, Operations: max(w.Operations, 1), Folder: folder,
		Effort: requestEffort{e.least, e.most, e.round.Seconds(), e.budget.Seconds()}}
	for i, in := range w.Inputs {
		f := inputFile{filepath.Join(folder, fmt.Sprintf("input-%d", i)), in.Shape}
		if err := os.WriteFile(f.File, in.Data, 0o600); err != nil {
			return nil, nil, err
		}
		r.Inputs = append(r.Inputs, f)
	}
	return r, sizes, nil
}

// sizes are the results' bytes. Work that is not well formed is an ErrArgument.
func (w *PeerWork) sizes(results []int) ([]int64, error) {
	var shapes [][]int
	for i, in := range w.Inputs {
		if len(in.Shape) < 2 || int64(len(in.Data)) != w.bytes(in.Shape) {
			return nil, weir.Argf("bench.Peers", "input %d has %d bytes and shape %v; expected matrices of %v", i, len(in.Data), in.Shape, w.DType)
		}
		shapes = append(shapes, in.Shape)
	}
	for k, p := range w.Products {
		if min(p[0], p[1]) < 0 || max(p[0], p[1]) >= len(shapes) {
			return nil, weir.Argf("bench.Peers", "product %d is of %v; expected inputs or earlier products, of which there are %d", k, p, len(shapes))
		}
		a, b := shapes[p[0]], shapes[p[1]]
		last := len(a) - 1
		if len(a) != len(b) || !slices.Equal(a[:last-1], b[:last-1]) || a[last] != b[last-1] {
			return nil, weir.Argf("bench.Peers", "product %d is of shapes %v and %v, which do not fit", k, a, b)
		}
		shapes = append(shapes, append(slices.Clone(a[:last]), b[last]))
	}
	var sizes []int64
	for _, k := range results {
		if k < 0 || k >= len(w.Products) {
			return nil, weir.Argf("bench.Peers", "result %d; there are %d products", k, len(w.Products))
		}
		sizes = append(sizes, w.bytes(shapes[len(w.Inputs)+k]))
	}
	return sizes, nil
}

func (w *PeerWork) bytes(shape []int) int64 {
	n := w.DType.Size()
	for _, extent := range shape {
		n *= int64(extent)
	}
	return n
}
