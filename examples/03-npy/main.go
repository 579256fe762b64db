// Example 03 contracts arrays from files and writes the result to one.
//
// Beside what 02 has, it shows .npy files: NumPy made those in examples/data,
// one of them in Fortran order and one in big-endian byte order, and would read
// the result. Reading and writing wait; what lies between does not.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/tensor"
)

func main() {
	rt, err := runtime.Start(runtime.Options{})
	if err != nil {
		log.Fatal(err)
	}
	ctx, free := tensor.Scope(context.Background())
	if err := errors.Join(join(ctx, "examples/data"), free(), rt.Close()); err != nil {
		log.Fatal(err)
	}
}

// join contracts three sites of a tensor train into one tensor.
func join(ctx context.Context, folder string) error {
	var sites []*tensor.Array
	for _, name := range []string{"left", "middle", "right"} {
		a, err := tensor.LoadNPY(ctx, filepath.Join(folder, name+".npy"))
		if err != nil {
			return err
		}
		fmt.Println(name, "is", a.DType(), a.Shape(), "with strides", a.Strides())
		sites = append(sites, a)
	}
	theta, err := tensor.Einsum(ctx, "asb,btc,cud->astud", sites...)
	if err != nil {
		return err
	}
	temporary, err := os.MkdirTemp("", "weir")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temporary)
	file := filepath.Join(temporary, "theta.npy")
	if err := tensor.SaveNPY(ctx, file, theta); err != nil {
		return err
	}
	again, err := tensor.LoadNPY(ctx, file)
	if err != nil {
		return err
	}
	fmt.Println("theta is", again.DType(), again.Shape())
	square, err := tensor.Einsum(ctx, "astud,astud->", again, again)
	if err != nil {
		return err
	}
	fmt.Println("its squared norm:", square)
	return nil
}
