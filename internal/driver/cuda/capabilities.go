//go:build cuda

package cuda

import (
	"fmt"

	"gorgonia.org/cu"

	"github.com/weirgo/weir/internal/driver"
)

// Attributes that cu has no names for.
const (
	attributeCooperativeLaunch = cu.DeviceAttribute(95)
	attributeMemoryPools       = cu.DeviceAttribute(115)
)

// greatestPriority is what every GPU since Volta answers; the range is asked of
// a context, and discovery makes none. The driver takes a priority beyond a
// device's range for the range's end.
const greatestPriority = -5

// describe takes the capability snapshot.
func (d *device) describe() (err error) {
	if d.handle, err = cu.GetDevice(d.ordinal); err != nil {
		return err
	}
	c := &d.caps
	if c.Name, err = d.handle.Name(); err != nil {
		return err
	}
	if c.MemoryBytes, err = d.handle.TotalMem(); err != nil {
		return err
	}
	if id, err := d.handle.UUID(); err == nil {
		c.UUID = "GPU-" + id.String()
	}
	get := func(a cu.DeviceAttribute) int {
		v, err := d.handle.Attribute(a)
		if err != nil {
			return 0 // an attribute that this driver does not know is one that the device has not
		}
		return v
	}
	c.PCI = fmt.Sprintf("%04x:%02x:%02x.0", get(cu.PciDomainID), get(cu.PciBusID), get(cu.PciDeviceID))
	c.ComputeMajor, c.ComputeMinor = get(cu.ComputeCapabilityMajor), get(cu.ComputeCapabilityMinor)
	c.Multiprocessors = get(cu.MultiprocessorCount)
	c.MaxThreadsPerBlock = get(cu.MaxThreadsPerBlock)
	c.WarpSize = get(cu.WarpSize)
	c.SharedBytesPerBlock = int64(get(cu.MaxSharedMemoryPerBlock))
	c.CopyEngines = get(cu.AsyncEngineCount)
	c.ConcurrentKernels = get(cu.ConcurrentKernels) != 0
	c.ManagedMemory = get(cu.ManagedMemory) != 0
	c.ConcurrentManaged = get(cu.ConcurrentManagedAccess) != 0
	c.PageableAccess = get(cu.PageableMemoryAccess) != 0
	if get(cu.StreamPrioritiesSupported) != 0 {
		c.PriorityGreatest = greatestPriority
	}
	c.CooperativeLaunch = get(attributeCooperativeLaunch) != 0
	c.StreamOrderedPools = get(attributeMemoryPools) != 0
	return nil
}

func (d *device) Name() string                       { return d.name }
func (d *device) Ordinal() int                       { return d.ordinal }
func (d *device) Capabilities() *driver.Capabilities { return &d.caps }
