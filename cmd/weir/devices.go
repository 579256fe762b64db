package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/weirgo/weir/internal/hostblas"
	"github.com/weirgo/weir/runtime"
)

// inventory is what weir devices prints, and with --json as it is. Its names
// are kept. Zero, false and "" are unknown or absent.
type inventory struct {
	Devices []deviceEntry `json:"devices"`
	GPU     gpuEntry      `json:"gpu"`
	BLAS    blasEntry     `json:"blas"` // of the host device
}

type deviceEntry struct {
	Name                    string `json:"name"`
	Default                 bool   `json:"default"`
	Description             string `json:"description"`
	UUID                    string `json:"uuid"`
	PCI                     string `json:"pci"`
	ComputeCapability       string `json:"compute_capability"`
	MemoryBytes             int64  `json:"memory_bytes"`
	FreeBytes               int64  `json:"free_bytes"`
	Multiprocessors         int    `json:"multiprocessors"` // processors, on the host
	MaxThreadsPerBlock      int    `json:"max_threads_per_block"`
	WarpSize                int    `json:"warp_size"`
	SharedBytesPerBlock     int64  `json:"shared_bytes_per_block"`
	CopyEngines             int    `json:"copy_engines"`
	ConcurrentKernels       bool   `json:"concurrent_kernels"`
	ManagedMemory           bool   `json:"managed_memory"`
	ConcurrentManagedAccess bool   `json:"concurrent_managed_access"`
	PageableAccess          bool   `json:"pageable_access"`
	PriorityLeast           int    `json:"stream_priority_least"`
	PriorityGreatest        int    `json:"stream_priority_greatest"`
	CooperativeLaunch       bool   `json:"cooperative_launch"`
	StreamOrderedPools      bool   `json:"stream_ordered_pools"`
	UnifiedHostAddresses    bool   `json:"unified_host_addresses"`
}

type gpuEntry struct {
	Visible   bool           `json:"visible"`
	Reason    string         `json:"reason"`    // why not
	Libraries []libraryEntry `json:"libraries"` // of visible ones
}

// libraryEntry has a path or the reason why there is none.
type libraryEntry struct {
	Name   string `json:"name"`
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

type blasEntry struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Path    string `json:"path"`
	Threads int    `json:"threads"`
	Reason  string `json:"reason"`
}

func newDevicesCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "devices",
		Short: "List the devices and what they can do",
		Long: `List the devices that Weir sees, the default one first, with what they can do;
why there is no GPU, if there is none, or which files its libraries are, or why
they are not found; and which BLAS library computes the
products of the host device, and why. Nothing is created on any device.

  $ weir devices
  $ weir devices --json | jq '.devices[].name'
  $ WEIR_BLAS=gonum weir devices`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			all, err := takeInventory()
			if err != nil {
				return err
			}
			if asJSON {
				encoder := json.NewEncoder(cmd.OutOrStdout())
				encoder.SetIndent("", "  ")
				return encoder.Encode(all)
			}
			return all.print(cmd.OutOrStdout())
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object; sizes are in bytes")
	return cmd
}

func takeInventory() (*inventory, error) {
	devices, err := runtime.Enumerate()
	if err != nil {
		return nil, err
	}
	all := &inventory{BLAS: blasOf(hostblas.Default())}
	if why := runtime.NoGPU(); why != nil {
		all.GPU = gpuEntry{Reason: why.Error(), Libraries: []libraryEntry{}}
	} else {
		all.GPU = gpuEntry{Visible: true, Libraries: gpuLibraries()}
	}
	for i, d := range devices {
		entry, err := describe(d)
		if err != nil {
			return nil, err
		}
		entry.Default = i == 0 // as runtime.Start has it
		all.Devices = append(all.Devices, entry)
	}
	return all, nil
}

func describe(d runtime.Device) (deviceEntry, error) {
	c := d.Capabilities()
	e := deviceEntry{
		Name: d.Name(), Description: c.Name, UUID: c.UUID, PCI: c.PCI,
		MemoryBytes: c.MemoryBytes, Multiprocessors: c.Multiprocessors, MaxThreadsPerBlock: c.MaxThreadsPerBlock,
		WarpSize: c.WarpSize, SharedBytesPerBlock: c.SharedBytesPerBlock, CopyEngines: c.CopyEngines,
		ConcurrentKernels: c.ConcurrentKernels, ManagedMemory: c.ManagedMemory,
		ConcurrentManagedAccess: c.ConcurrentManaged, PageableAccess: c.PageableAccess,
		PriorityLeast: c.PriorityLeast, PriorityGreatest: c.PriorityGreatest,
		CooperativeLaunch: c.CooperativeLaunch, StreamOrderedPools: c.StreamOrderedPools, UnifiedHostAddresses: c.UnifiedHostAddresses,
	}
	if c.ComputeMajor > 0 {
		e.ComputeCapability = fmt.Sprintf("%d.%d", c.ComputeMajor, c.ComputeMinor)
	}
	free, _, err := d.Memory()
	e.FreeBytes = free
	return e, err
}

func blasOf(l *hostblas.Library) blasEntry {
	return blasEntry{Name: l.Name(), Version: l.Version(), Path: l.Path(), Threads: l.Threads(), Reason: l.Reason()}
}

// print lists what is known; a capability that is absent is left out.
func (all *inventory) print(w io.Writer) error {
	table := newTable(w)
	line := func(name, value string) {
		if value != "" && value != "0" {
			fmt.Fprintf(table, "  %s\t%s\n", name, value)
		}
	}
	size := func(n int64) string {
		if n == 0 {
			return ""
		}
		return inBytes(n)
	}
	yes := func(is bool) string {
		if is {
			return "yes"
		}
		return ""
	}
	for _, d := range all.Devices {
		title := d.Name
		if d.Default {
			title += " (default)"
		}
		fmt.Fprintln(table, title)
		line("description", d.Description)
		line("UUID", d.UUID)
		line("PCI", d.PCI)
		line("compute capability", d.ComputeCapability)
		line("memory", size(d.MemoryBytes))
		line("free memory", size(d.FreeBytes))
		line("multiprocessors", strconv.Itoa(d.Multiprocessors))
		line("threads per block", strconv.Itoa(d.MaxThreadsPerBlock))
		line("warp size", strconv.Itoa(d.WarpSize))
		line("shared memory per block", size(d.SharedBytesPerBlock))
		line("copy engines", strconv.Itoa(d.CopyEngines))
		line("concurrent kernels", yes(d.ConcurrentKernels))
		line("managed memory", yes(d.ManagedMemory))
		line("concurrent managed access", yes(d.ConcurrentManagedAccess))
		line("pageable access", yes(d.PageableAccess))
		if d.PriorityLeast != d.PriorityGreatest {
			line("stream priorities", fmt.Sprintf("%d (least) to %d (greatest)", d.PriorityLeast, d.PriorityGreatest))
		}
		line("cooperative launch", yes(d.CooperativeLaunch))
		line("stream-ordered pools", yes(d.StreamOrderedPools))
		line("unified host addresses", yes(d.UnifiedHostAddresses))
	}
	if !all.GPU.Visible {
		fmt.Fprintln(table, "no GPU")
		line("because", all.GPU.Reason)
	} else {
		fmt.Fprintln(table, "libraries of the GPUs")
		for _, l := range all.GPU.Libraries {
			line(l.Name, cmp.Or(l.Path, l.Reason))
		}
	}
	fmt.Fprintln(table, "BLAS of the host device")
	line("library", all.BLAS.Name)
	line("version", all.BLAS.Version)
	line("file", all.BLAS.Path)
	line("threads", strconv.Itoa(all.BLAS.Threads))
	line("because", all.BLAS.Reason)
	return table.Flush()
}
