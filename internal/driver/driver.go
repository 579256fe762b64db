package driver

import (
	"github.com/weirgo/weir/dtype"
)

// Ptr is an address in a device's memory, or in page-locked host memory that
// the device reads and writes. Only a host family's addresses may be
// dereferenced by the processor. 0 is no address.
type Ptr uintptr

// Family is one kind of device.
type Family interface {
	// Name is "host" or "cuda"; a device is called "name:ordinal".
	Name() string
	// Count is the number of visible devices. It creates nothing.
	Count() int
	// Unavailable says why Count is 0, and is nil when it is not.
	Unavailable() error
	// Open answers the device with that ordinal, always the same one. It takes
	// the capability snapshot, and creates no stream, pool, handle or
	// allocation on the device and changes no thread's current device.
	Open(ordinal int) (Device, error)
}

// Capabilities is what a device can do and how large it is; it never changes
// while the process runs. Zero means unknown or absent.
type Capabilities struct {
	Name                 string
	UUID                 string
	PCI                  string // "0000:1b:00.0"
	ComputeMajor         int
	ComputeMinor         int
	MemoryBytes          int64
	Multiprocessors      int // processors, on the host
	MaxThreadsPerBlock   int
	WarpSize             int
	SharedBytesPerBlock  int64
	CopyEngines          int
	ConcurrentKernels    bool
	ManagedMemory        bool
	ConcurrentManaged    bool
	PageableAccess       bool
	PriorityLeast        int // numerically largest: the lowest priority
	PriorityGreatest     int // numerically smallest: the highest
	CooperativeLaunch    bool
	StreamOrderedPools   bool
	UnifiedHostAddresses bool // host code may dereference device addresses
}

// Device is one device of a family.
type Device interface {
	Name() string
	Ordinal() int
	Capabilities() *Capabilities
	// Err is nil, or the terminal error of a dead context. It is cheap and
	// makes no call that a dead context could block.
	Err() error
	// Select makes the device current on the calling OS thread, for foreign
	// code; restore brings the previous one back. The caller has locked the
	// goroutine to its thread.
	Select() (restore func(), err error)
	// Memory answers the device's free and total bytes now.
	Memory() (free, total int64, err error)

	// NewStream makes a stream that does not order itself with any other.
	// priority lies in the capability range.
	NewStream(priority int) (Stream, error)
	// NewEvent makes a non-timing event. Unrecorded, it counts as done.
	NewEvent() (Event, error)
	// NewPool makes a stream-ordered memory pool; ErrNotSupported without
	// Capabilities.StreamOrderedPools.
	NewPool(PoolConfig) (Pool, error)

	// Alloc and Free are the plain pair; Free waits for the device.
	Alloc(bytes int64) (Ptr, error)
	Free(Ptr) error
	// AllocHost and FreeHost handle page-locked host memory.
	AllocHost(bytes int64) (Ptr, error)
	FreeHost(Ptr) error

	// NewBLAS and NewSolver make library handles, each with a workspace of its
	// own. They can be slow.
	NewBLAS() (BLAS, error)
	NewSolver() (Solver, error)
}

// Stream is an ordered queue of device work.
type Stream interface {
	// Record captures the tail of the stream in e.
	Record(e Event) error
	// Wait lets later work of the stream start only when e's latest record is
	// done. Of an event of another family: ErrNotSupported unless the stream's
	// family can wait for it.
	Wait(e Event) error
	// Notify has w woken when all work submitted so far is done, or when the
	// context has died. It costs the stream more than an event does.
	Notify(w Waker) error
	// Query says whether all work submitted so far is done.
	Query() (bool, error)
	// Synchronize waits for all work submitted so far.
	Synchronize() error
	// Destroy lets submitted work finish and gives the stream up; no wait.
	Destroy() error

	// Copy moves bytes between addresses of the family's devices and
	// page-locked memory; the two do not overlap.
	Copy(dst, src Ptr, bytes int64) error
	// CopyIn copies a plain Go slice to dst; src may be reused on return.
	CopyIn(dst Ptr, src []byte) error
	// CopyOut copies to a plain Go slice, and returns when dst is filled: it
	// waits for the stream's earlier work.
	CopyOut(dst []byte, src Ptr) error
	// Zero clears bytes.
	Zero(dst Ptr, bytes int64) error
	// Launch runs a kernel over strided views.
	Launch(k *Kernel) error
	// Call runs fn in stream order, on a family whose device runs Go code; else
	// ErrNotSupported. fn must not wait for device work.
	Call(fn func()) error
	// Native is the family's own handle (CUstream), 0 where there is none.
	Native() uintptr
}

// Event marks a place in a stream.
type Event interface {
	// Query says whether the latest record is done.
	Query() (bool, error)
	// Synchronize waits for the latest record.
	Synchronize() error
	Destroy() error
}

// Waker is told that work ended. err is nil, or the terminal error.
type Waker interface{ Wake(err error) }

// PoolConfig configures a stream-ordered pool. A zero Limit is no limit.
type PoolConfig struct {
	// ReleaseThreshold is how many unused bytes the pool keeps when it is
	// asked to trim itself at a synchronisation.
	ReleaseThreshold int64
	// Limit is the most bytes the pool may hold.
	Limit int64
}

// PoolStats counts bytes. Used is what is allocated now; Held is what the pool
// has from the device; the High fields are the largest values seen.
type PoolStats struct{ Used, Held, HighUsed, HighHeld int64 }

// Pool is stream-ordered memory.
type Pool interface {
	// Alloc answers memory that work submitted to s from now on may use. More
	// than the limit or the device allows is an ErrOutOfMemory.
	Alloc(s Stream, bytes int64) (Ptr, error)
	// Free gives memory back once s's work submitted so far is done.
	Free(s Stream, p Ptr) error
	// Trim gives unused memory back to the device, keeping at most keep bytes
	// of it. Memory whose stream-ordered free is unfinished stays.
	Trim(keep int64) error
	Stats() (PoolStats, error)
	// Destroy waits for frees in flight and gives all memory back.
	Destroy() error
}

// View is a strided view of device memory: Ptr addresses the element with
// index zero in every axis; strides are in elements and may be zero or
// negative. Rank 0 is one element.
type View struct {
	Ptr     Ptr
	DType   dtype.DType
	Shape   []int64
	Strides []int64
}

// KernelOp names a kernel.
type KernelOp uint8

const (
	// KernelCopy: Out = A, converted to Out's type (complex to real drops the
	// imaginary part; real to integer truncates toward zero).
	KernelCopy KernelOp = iota
	// KernelMul: Out = A·B elementwise. All three have one type.
	KernelMul
	// KernelSum: Out[i] = sum over j of A[i, j], where A's leading axes are
	// Out's and the rest are summed in at least twice the precision of the
	// elements, or in several parts. One type.
	KernelSum
	// KernelFill: Out = Alpha.
	KernelFill
	// KernelAxpby: Out = Alpha·A + Beta·Out; Beta = 0 does not read Out. One
	// type.
	KernelAxpby
)

func (op KernelOp) String() string {
	return [...]string{"copy", "mul", "sum", "fill", "axpby"}[op]
}

// Kernel is one launch. A, B and Out have Out's shape unless the operation
// says otherwise; Out has no two indices at one address. ConjA and ConjB
// conjugate what is read.
type Kernel struct {
	Op           KernelOp
	Out, A, B    View
	ConjA, ConjB bool
	Alpha, Beta  complex128
}

// Op says how BLAS reads a matrix.
type Op uint8

const (
	NoTrans Op = iota
	Trans
	ConjTrans
)

// Gemm is C = Alpha·op(A)·op(B) + Beta·C for Batch independent problems, in
// BLAS's column-major convention: op(A) is M×K, op(B) K×N, C M×N, leading
// dimensions and batch strides in elements. Beta = 0 does not read C; K = 0
// still scales C. A and B do not overlap C. For integer types Alpha and Beta
// have integer real parts and arithmetic wraps.
type Gemm struct {
	DType                     dtype.DType
	OpA, OpB                  Op
	M, N, K                   int64
	Alpha, Beta               complex128
	A, B, C                   Ptr
	LDA, LDB, LDC             int64
	Batch                     int64 // 0 does nothing
	StrideA, StrideB, StrideC int64
}

// BLAS is a library handle; one goroutine at a time.
type BLAS interface {
	Gemm(s Stream, g *Gemm) error
	// WorkspaceBytes is what the handle holds now.
	WorkspaceBytes() int64
	Destroy() error
}

// Solver is a dense linear algebra handle; one goroutine at a time. Its
// operations come with package provider/solver.
type Solver interface {
	WorkspaceBytes() int64
	Destroy() error
}
