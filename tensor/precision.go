package tensor

import (
	"fmt"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/provider/blas"
)

// ProductOption changes how a product is computed: a Precision, or a Provider.
type ProductOption interface {
	apply(productOptions) productOptions
}

type productOptions struct {
	precision Precision
	provider  Provider
}

// Precision says how precisely the terms of a product are multiplied: it trades
// bits for speed where the device has units for narrow numbers. Sums are those
// of the element type, and of float32 for the 16-bit types, in every case. A
// device may be more precise than asked; the host always is.
type Precision uint8

const (
	// Exact, the default, rounds no element before it is multiplied.
	Exact Precision = iota
	// FastTF32 may round elements of float32 and complex64 to 11 bits, so that
	// a term a·b is off by at most 2^-9·|a·b|. Other types ignore the fast ones.
	FastTF32
	// FastBF16 may round them to 8 bits, an error of at most 2^-6·|a·b|.
	FastBF16
	// FastFP16 may round them to 11 bits and to float16's range: above 65504 they
	// can become infinite, below 2^-14 they lose bits.
	FastFP16
)

func (p Precision) String() string {
	if p > FastFP16 {
		return fmt.Sprintf("Precision(%d)", uint8(p))
	}
	return [...]string{"exact", "TF32", "BF16", "FP16"}[p]
}

func (p Precision) apply(o productOptions) productOptions {
	o.precision = p
	return o
}

// check refuses what is none of the constants.
func (p Precision) check(op string) error {
	if p > FastFP16 {
		return weir.Argf(op, "precision %v; expected one of Exact, FastTF32, FastBF16 and FastFP16", p)
	}
	return nil
}

// compute is p as BLAS has it.
func (p Precision) compute() blas.Compute {
	return [...]blas.Compute{blas.ComputeExact, blas.ComputeTF32, blas.ComputeBF16, blas.ComputeFP16}[p]
}

// optionsOf applies options in order.
func optionsOf(op string, opts []ProductOption) (o productOptions, err error) {
	for i, x := range opts {
		if x == nil {
			return o, weir.Argf(op, "option %d is nil; expected one of package tensor's", i)
		}
		o = x.apply(o)
	}
	if err := o.provider.check(op); err != nil {
		return o, err
	}
	return o, o.precision.check(op)
}
