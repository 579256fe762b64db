package driver

import (
	"time"

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
	// NewMark makes a mark, which has the time. It is for profiling alone: it
	// costs the device more than an event does.
	NewMark() (Mark, error)
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

	// Capture answers as a graph what submit gives to the streams; nothing of it
	// runs. Each of them begins where the graph begins, events recorded and waited
	// for between them are its order, and it ends when all have ended. Nobody else
	// uses the streams meanwhile. Products take handles as ever, whose workspaces
	// launches use too. Host memory cannot be copied from or to, and nothing be
	// waited for. ErrNotSupported where the family has no graphs, and of work that a
	// library does not let be captured.
	Capture(streams []Stream, submit func() error) (Graph, error)
}

// Graph is work that was captured, with its addresses.
type Graph interface {
	// Launch submits all of it to s. Launches do not overlap: the caller has each
	// come after the one before.
	Launch(s Stream) error
	// Destroy gives the graph up, whose launches are done.
	Destroy() error
}

// Stream is an ordered queue of device work.
type Stream interface {
	// Record captures the tail of the stream in e.
	Record(e Event) error
	// Wait lets later work of the stream start only when e's latest record is
	// done. Of an event of another family: ErrNotSupported unless the stream's
	// family can wait for it.
	Wait(e Event) error
	// Mark puts m at the tail of the stream: the device notes the time when the
	// work submitted so far is done.
	Mark(m Mark) error
	// Notify has w woken when all work submitted so far is done, or when the
	// context has died. It costs the stream more than an event does.
	Notify(w Waker) error
	// Query says whether all work submitted so far is done.
	Query() (bool, error)
	// Idle says whether that is known at no cost: false where the device would have
	// to be asked, and of a device that is lost.
	Idle() bool
	// Synchronize waits for all work submitted so far.
	Synchronize() error
	// Destroy lets submitted work finish and gives the stream up; no wait.
	Destroy() error

	// Copy moves bytes between addresses of the stream's device and page-locked
	// memory; the two do not overlap.
	Copy(dst, src Ptr, bytes int64) error
	// CopyPeer moves bytes from memory of one device to memory of another. to and
	// from are the devices' ordinals; the stream is of either. The first one
	// between two devices may take milliseconds for each of their pools, as it
	// gives them access to each other's.
	CopyPeer(dst Ptr, to int, src Ptr, from int, bytes int64) error
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

// Mark is a place in a stream with the device's time. It is put on streams of
// its own device.
type Mark interface {
	// Since waits for both marks' latest places and answers the time from
	// earlier's to this one's, on one device's clock.
	Since(earlier Mark) (time.Duration, error)
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
	// KernelFill: Out = Alpha, for integers its real part reduced to the type.
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
	Compute                   Compute
	OpA, OpB                  Op
	M, N, K                   int64
	Alpha, Beta               complex128
	A, B, C                   Ptr
	LDA, LDB, LDC             int64
	Batch                     int64 // 0 does nothing
	StrideA, StrideB, StrideC int64
}

// Compute says how precisely the terms of a product are multiplied. Sums are
// those of the element type, of float32 for the 16-bit types, in every case; a
// family may always be more precise than asked.
type Compute uint8

const (
	// ComputeExact multiplies in the element type: float32 keeps its 24 bits,
	// 16-bit elements are multiplied and summed in float32.
	ComputeExact Compute = iota
	// ComputeTF32, ComputeBF16 and ComputeFP16 may round float32 and complex64
	// elements to 11, 8 and 11 bits before they are multiplied; FP16 also to
	// its range. Other element types ignore them.
	ComputeTF32
	ComputeBF16
	ComputeFP16
)

// GemmGroup is products of one shape at addresses of their own: product i is
// As[i], Bs[i], Cs[i] with what Gemm says, whose own addresses, batch and
// strides are not read. The three have one length. No C overlaps another, of
// any group of the call.
type GemmGroup struct {
	Gemm
	As, Bs, Cs []Ptr
}

// BLAS is a library handle; one goroutine at a time.
type BLAS interface {
	Gemm(s Stream, g *Gemm) error
	// GemmGroups submits all products of all groups, in any order, as few
	// launches: one for a group, or one for several groups where the library
	// can.
	GemmGroups(s Stream, groups []GemmGroup) error
	// WorkspaceBytes is what the handle holds now.
	WorkspaceBytes() int64
	Destroy() error
}

// Factors says which singular vectors are asked for.
type Factors uint8

const (
	FactorsNone Factors = iota // S alone
	FactorsThin                // U is M×K, VH K×N, with K = min(M, N)
	FactorsFull                // U is M×M, VH N×N
)

// SVD is A = U·diag(S)·VH of an M×N matrix of one of the four types of BLAS,
// column-major; leading dimensions are in elements. S has min(M, N) elements of
// the real type, from large to small. A is destroyed. Where the iteration does
// not converge, all results are NaN. Nothing overlaps.
type SVD struct {
	DType          dtype.DType
	Factors        Factors
	M, N           int64
	A, S, U, VH    Ptr // U and VH are not read without factors
	LDA, LDU, LDVH int64
}

// Solver is a dense linear algebra handle; one goroutine at a time.
type Solver interface {
	// SVD submits a decomposition. The handle's workspace grows to what it
	// needs; growing may wait for the handle's earlier work. Where a library
	// looks at the matrix on the host, as cuSOLVER does, SVD waits for the
	// stream's earlier work and for most of its own.
	SVD(s Stream, p *SVD) error
	// WorkspaceBytes is what the handle holds now.
	WorkspaceBytes() int64
	Destroy() error
}
