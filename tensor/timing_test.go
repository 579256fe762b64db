package tensor

import (
	"context"
	"testing"

	"github.com/weirgo/weir/internal/driver"
	"github.com/weirgo/weir/internal/driver/fault"
	"github.com/weirgo/weir/internal/driver/host"
)

func TestProductsMakeNoTimingEvents(t *testing.T) {
	plan := &fault.Plan{}
	ctx := startOn(t, []driver.Family{fault.New(host.New(host.Options{HandOver: true}), plan)})
	a := must(From(ctx, []float32{1, 2, 3, 4}, 2, 2))
	must(Data[float32](ctx, must(MatMul(ctx, a, a))))
	if _, _, err := einsumProgram(context.Background()); err != nil {
		t.Fatal(err)
	}
	n := plan.Counts()
	if n[fault.BLASGemm]+n[fault.BLASGemmGroups] == 0 || n[fault.DeviceNewEvent] == 0 {
		t.Fatal("no product was made")
	}
	if n[fault.DeviceNewMark] != 0 || n[fault.StreamMark] != 0 {
		t.Errorf("%d marks were made and %d put; expected none", n[fault.DeviceNewMark], n[fault.StreamMark])
	}
}
