// Example 08 is a pipeline over two devices.
//
// What is asked for under a device's context is launched by that device's tasks,
// and operations run where their operands live; To carries a value across. While
// the second device works on one batch, the first has the next. Without two GPUs
// the host plays both parts: it can be several devices.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/weirgo/weir/async"
	"github.com/weirgo/weir/runtime"
	"github.com/weirgo/weir/tensor"
	"github.com/weirgo/weir/tensor/flow"
)

func main() {
	rt, err := runtime.Start(runtime.Options{Host: runtime.HostOnly, HostDevices: 2})
	if err != nil {
		log.Fatal(err)
	}
	ctx, free := tensor.Scope(context.Background())
	if err := errors.Join(pipeline(ctx), free(), rt.Close()); err != nil {
		log.Fatal(err)
	}
}

func pipeline(ctx context.Context) error {
	devices, err := runtime.Enrolled()
	if err != nil {
		return err
	}
	first, second := runtime.On(ctx, devices[0].Device()), runtime.On(ctx, devices[1].Device())
	embed, err := tensor.From(first, []float64{1, 2, 3, 4}, 2, 2)
	if err != nil {
		return err
	}
	readout, err := tensor.From(second, []float64{1, 0, 1, 0, 1, 1}, 2, 3)
	if err != nil {
		return err
	}
	e, r := async.Of(embed), async.Of(readout)

	var outputs []*flow.Value
	for batch := range 4 {
		x, err := tensor.Full(first, complex(float64(batch), 0), tensor.Float64, 1, 2)
		if err != nil {
			return err
		}
		hidden := flow.MatMul(first, async.Of(x), e)
		there := flow.To(second, hidden, devices[1].Device())
		outputs = append(outputs, flow.MatMul(second, there, r))
	}
	for batch, v := range outputs {
		a, err := v.Get(ctx)
		if err != nil {
			return err
		}
		y, err := tensor.Data[float64](ctx, a)
		if err != nil {
			return err
		}
		fmt.Printf("batch %d on %v: %v\n", batch, a.Device(), y)
	}
	return nil
}
