// Package einsum plans Einstein summation: it parses NumPy's notation, checks
// shapes, searches the order of pairwise products, keeps a memory limit, and
// says for each step how it lowers to one strided batched GEMM.
//
//	expr, err := einsum.Parse("ij,jk,kl->il", []int{2, 2, 2})
//	prob, err := expr.Bind(shapes, nil)
//	path, err := prob.Path(einsum.Options{DType: dtype.Float64, MemoryLimit: 1 << 30})
//
// It touches no array, device or clock; the caller runs Path.Steps in order.
//
// The semantics are numpy.einsum's, without its optimize option: extent 1
// broadcasts against the same index of another operand, under an ellipsis or
// not; extent 0 is legal. Any Unicode letter is an index. Indices of extent 1
// take no part in a path. A search does a bounded amount of work, counted and
// not timed, so that equal input gives an equal path.
//
// Expr, Problem and Path are immutable and safe for concurrent use; what they
// hand out must not be changed.
//
// Every error is a *weir.Error of operation "einsum". It matches
// weir.ErrArgument, or weir.ErrOutOfMemory where the memory limit can't be
// kept. In messages operands, axes, positions, steps and pairs count from 1;
// terms count from 0, as in Options.Order.
package einsum
