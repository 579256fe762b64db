package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/weirgo/weir/dtype"
)

// sizeFlag is a number of bytes; 0 until it is set.
type sizeFlag int64

func (f *sizeFlag) Set(text string) error {
	n, err := humanize.ParseBytes(text)
	if err != nil || n == 0 || n > math.MaxInt64 {
		return fmt.Errorf("expected a number of bytes from 1 to 2^63-1, as in 512MiB, 2GB or 1000")
	}
	*f = sizeFlag(n)
	return nil
}

func (f *sizeFlag) Type() string { return "SIZE" }

func (f *sizeFlag) String() string {
	if *f == 0 {
		return ""
	}
	return humanize.IBytes(uint64(*f))
}

// dtypeFlag is an element type; set says whether it was given.
type dtypeFlag struct {
	dtype dtype.DType
	set   bool
}

func (f *dtypeFlag) Set(text string) error {
	dt, err := dtype.Parse(text)
	if err != nil {
		return fmt.Errorf("expected one of %s", strings.Join(dtype.Names(), ", "))
	}
	f.dtype, f.set = dt, true
	return nil
}

func (f *dtypeFlag) Type() string { return "NAME" }

func (f *dtypeFlag) String() string {
	if !f.set {
		return ""
	}
	return f.dtype.String()
}

// addDeviceFlag gives cmd the flag that names a device.
func addDeviceFlag(cmd *cobra.Command, device *string) {
	cmd.Flags().StringVar(device, "device", "", "`NAME` of the device, as in host:0 (default: the first that 'weir devices' lists)")
}
