package fault

import (
	"slices"
	"strings"
)

// Call names a method of package driver that answers an error.
type Call string

// Any stands for every call where a Plan's verb takes a Call.
const Any Call = "any"

const (
	FamilyOpen Call = "Family.Open"

	DeviceSelect    Call = "Device.Select"
	DeviceMemory    Call = "Device.Memory"
	DeviceNewStream Call = "Device.NewStream"
	DeviceNewEvent  Call = "Device.NewEvent"
	DeviceNewMark   Call = "Device.NewMark"
	DeviceNewPool   Call = "Device.NewPool"
	DeviceAlloc     Call = "Device.Alloc"
	DeviceFree      Call = "Device.Free"
	DeviceAllocHost Call = "Device.AllocHost"
	DeviceFreeHost  Call = "Device.FreeHost"
	DeviceNewBLAS   Call = "Device.NewBLAS"
	DeviceNewSolver Call = "Device.NewSolver"
	DeviceCapture   Call = "Device.Capture"

	StreamRecord      Call = "Stream.Record"
	StreamWait        Call = "Stream.Wait"
	StreamMark        Call = "Stream.Mark"
	StreamNotify      Call = "Stream.Notify"
	StreamQuery       Call = "Stream.Query"
	StreamSynchronize Call = "Stream.Synchronize"
	StreamDestroy     Call = "Stream.Destroy"
	StreamCopy        Call = "Stream.Copy"
	StreamCopyPeer    Call = "Stream.CopyPeer"
	StreamCopyIn      Call = "Stream.CopyIn"
	StreamCopyOut     Call = "Stream.CopyOut"
	StreamZero        Call = "Stream.Zero"
	StreamLaunch      Call = "Stream.Launch"
	StreamCall        Call = "Stream.Call"

	EventQuery       Call = "Event.Query"
	EventSynchronize Call = "Event.Synchronize"
	EventDestroy     Call = "Event.Destroy"

	MarkSince   Call = "Mark.Since"
	MarkDestroy Call = "Mark.Destroy"

	PoolAlloc   Call = "Pool.Alloc"
	PoolFree    Call = "Pool.Free"
	PoolTrim    Call = "Pool.Trim"
	PoolStats   Call = "Pool.Stats"
	PoolDestroy Call = "Pool.Destroy"

	BLASGemm       Call = "BLAS.Gemm"
	BLASGemmGroups Call = "BLAS.GemmGroups"
	BLASDestroy    Call = "BLAS.Destroy"
	SolverSVD      Call = "Solver.SVD"
	SolverDestroy  Call = "Solver.Destroy"

	GraphLaunch  Call = "Graph.Launch"
	GraphDestroy Call = "Graph.Destroy"
)

var calls = []Call{
	FamilyOpen,
	DeviceSelect, DeviceMemory, DeviceNewStream, DeviceNewEvent, DeviceNewMark, DeviceNewPool,
	DeviceAlloc, DeviceFree, DeviceAllocHost, DeviceFreeHost, DeviceNewBLAS, DeviceNewSolver, DeviceCapture,
	StreamRecord, StreamWait, StreamMark, StreamNotify, StreamQuery, StreamSynchronize, StreamDestroy,
	StreamCopy, StreamCopyPeer, StreamCopyIn, StreamCopyOut, StreamZero, StreamLaunch, StreamCall,
	EventQuery, EventSynchronize, EventDestroy, MarkSince, MarkDestroy,
	PoolAlloc, PoolFree, PoolTrim, PoolStats, PoolDestroy,
	BLASGemm, BLASGemmGroups, BLASDestroy, SolverSVD, SolverDestroy, GraphLaunch, GraphDestroy,
}

// Calls lists every call that can be made to fail; Any is not one of them.
func Calls() []Call { return slices.Clone(calls) }

// GivesUp says whether the call gives something up, and so is made even when
// it is to fail.
func (c Call) GivesUp() bool {
	return c == DeviceFree || c == DeviceFreeHost || c == PoolFree || strings.HasSuffix(string(c), ".Destroy")
}

// allocates says whether the call's own failure is a lack of memory.
func (c Call) allocates() bool {
	return c == DeviceAlloc || c == DeviceAllocHost || c == PoolAlloc
}
