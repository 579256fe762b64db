// The functions of cuBLAS that multiply matrices. Each has a form with sizes of
// 32 bits and, with _64 at the end of its name, one with sizes of 64.
#include "product.h"

using namespace simcuda;
using namespace simcuda::blas;

namespace {

DevicePtr address(const void *at) { return reinterpret_cast<DevicePtr>(at); }

Status plain(const char *function, DataType type, BlasHandle handle, const Batch &shape) {
	return call(function, [&](Lock &) {
		auto found = find(handle);
		auto batch = shape;
		batch.types = types_for(*found, type);
		submit(function, *found, batch);
	});
}

Status extended(const char *function, DataType a, DataType b, DataType c, ComputeType compute, BlasHandle handle, const Batch &shape) {
	return call(function, [&](Lock &) {
		auto found = find(handle);
		auto batch = shape;
		batch.types = types_of(a, b, c, compute);
		submit(function, *found, batch);
	});
}

// Groups are the arguments of a grouped product: arrays with one entry a group,
// and on the device the addresses of all matrices, group after group. They are
// submitted group by group, which nobody can tell from one launch.
template <class Int> struct Groups {
	const Transpose *op_a, *op_b;
	const Int *m, *n, *k;
	const void *alpha;
	const void *a;
	const Int *lda;
	const void *b;
	const Int *ldb;
	const void *beta;
	const void *c;
	const Int *ldc;
	Int count;
	const Int *sizes;
};

template <class Int> void submit_groups(const char *function, const Handle &handle, const Types &types, const Groups<Int> &g) {
	require(g.count >= 0, invalid_value);
	require(handle.pointer_mode == pointer_mode_host, not_supported);
	auto scalar = [&](const void *all, Int i) { return static_cast<const std::byte *>(all) + i * static_cast<Int>(bytes_of(types.scalar)); };
	std::uint64_t before = 0; // bytes of addresses
	for (Int i = 0; i < g.count; before += static_cast<std::uint64_t>(g.sizes[i++]) * sizeof(DevicePtr)) {
		submit(function, handle,
			{types, g.op_a[i], g.op_b[i], g.m[i], g.n[i], g.k[i], scalar(g.alpha, i), scalar(g.beta, i), {address(g.a) + before, g.lda[i]},
				{address(g.b) + before, g.ldb[i]}, {address(g.c) + before, g.ldc[i]}, g.sizes[i], true});
	}
}

template <class Int> Status grouped(const char *function, DataType type, BlasHandle handle, const Groups<Int> &g) {
	return call(function, [&](Lock &) {
		auto found = find(handle);
		submit_groups(function, *found, types_for(*found, type), g);
	});
}

// NVIDIA's has real types only, and of the faster forms TF32's.
template <class Int>
Status grouped_extended(const char *function, DataType a, DataType b, DataType c, ComputeType compute, BlasHandle handle, const Groups<Int> &g) {
	return call(function, [&](Lock &) {
		auto found = find(handle);
		auto types = types_of(a, b, c, compute);
		require(types.scalar == r32f || types.scalar == r64f, not_supported);
		require(a == c && (types.rounding == Rounding::none || types.rounding == Rounding::tf32), not_supported);
		submit_groups(function, *found, types, g);
	});
}

} // namespace

#define GEMM(name, T, type, Int) \
	SIM_API Status name(BlasHandle handle, Transpose op_a, Transpose op_b, Int m, Int n, Int k, const T *alpha, const T *a, Int lda, \
		const T *b, Int ldb, const T *beta, T *c, Int ldc) { \
		return plain(#name, type, handle, \
			{{}, op_a, op_b, m, n, k, alpha, beta, {address(a), lda}, {address(b), ldb}, {address(c), ldc}}); \
	}

#define GEMM_STRIDED(name, T, type, Int) \
	SIM_API Status name(BlasHandle handle, Transpose op_a, Transpose op_b, Int m, Int n, Int k, const T *alpha, const T *a, Int lda, \
		long long stride_a, const T *b, Int ldb, long long stride_b, const T *beta, T *c, Int ldc, long long stride_c, \
		Int count) { \
		return plain(#name, type, handle, \
			{{}, op_a, op_b, m, n, k, alpha, beta, {address(a), lda, stride_a}, {address(b), ldb, stride_b}, \
				{address(c), ldc, stride_c}, count}); \
	}

#define GEMM_BATCHED(name, T, type, Int) \
	SIM_API Status name(BlasHandle handle, Transpose op_a, Transpose op_b, Int m, Int n, Int k, const T *alpha, const T *const a[], \
		Int lda, const T *const b[], Int ldb, const T *beta, T *const c[], Int ldc, Int count) { \
		return plain(#name, type, handle, \
			{{}, op_a, op_b, m, n, k, alpha, beta, {address(a), lda}, {address(b), ldb}, {address(c), ldc}, count, true}); \
	}

#define GEMM_GROUPED(name, T, type, Int) \
	SIM_API Status name(BlasHandle handle, const Transpose op_a[], const Transpose op_b[], const Int m[], const Int n[], const Int k[], \
		const T alpha[], const T *const a[], const Int lda[], const T *const b[], const Int ldb[], const T beta[], T *const c[], \
		const Int ldc[], Int count, const Int sizes[]) { \
		return grouped<Int>(#name, type, handle, {op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, count, sizes}); \
	}

#define PRODUCTS(letter, T, type) \
	GEMM(cublas##letter##gemm_v2, T, type, int) \
	GEMM(cublas##letter##gemm_v2_64, T, type, std::int64_t) \
	GEMM_STRIDED(cublas##letter##gemmStridedBatched, T, type, int) \
	GEMM_STRIDED(cublas##letter##gemmStridedBatched_64, T, type, std::int64_t) \
	GEMM_BATCHED(cublas##letter##gemmBatched, T, type, int) \
	GEMM_BATCHED(cublas##letter##gemmBatched_64, T, type, std::int64_t)

PRODUCTS(S, float, r32f)
PRODUCTS(D, double, r64f)
PRODUCTS(C, std::complex<float>, c32f)
PRODUCTS(Z, std::complex<double>, c64f)

GEMM_GROUPED(cublasSgemmGroupedBatched, float, r32f, int)
GEMM_GROUPED(cublasSgemmGroupedBatched_64, float, r32f, std::int64_t)
GEMM_GROUPED(cublasDgemmGroupedBatched, double, r64f, int)
GEMM_GROUPED(cublasDgemmGroupedBatched_64, double, r64f, std::int64_t)

#define GEMM_EX(name, Int) \
	SIM_API Status name(BlasHandle handle, Transpose op_a, Transpose op_b, Int m, Int n, Int k, const void *alpha, const void *a, \
		DataType type_a, Int lda, const void *b, DataType type_b, Int ldb, const void *beta, void *c, DataType type_c, Int ldc, \
		ComputeType compute, int) { \
		return extended(#name, type_a, type_b, type_c, compute, handle, \
			{{}, op_a, op_b, m, n, k, alpha, beta, {address(a), lda}, {address(b), ldb}, {address(c), ldc}}); \
	}

#define GEMM_STRIDED_EX(name, Int) \
	SIM_API Status name(BlasHandle handle, Transpose op_a, Transpose op_b, Int m, Int n, Int k, const void *alpha, const void *a, \
		DataType type_a, Int lda, long long stride_a, const void *b, DataType type_b, Int ldb, long long stride_b, \
		const void *beta, void *c, DataType type_c, Int ldc, long long stride_c, Int count, ComputeType compute, int) { \
		return extended(#name, type_a, type_b, type_c, compute, handle, \
			{{}, op_a, op_b, m, n, k, alpha, beta, {address(a), lda, stride_a}, {address(b), ldb, stride_b}, \
				{address(c), ldc, stride_c}, count}); \
	}

#define GEMM_BATCHED_EX(name, Int) \
	SIM_API Status name(BlasHandle handle, Transpose op_a, Transpose op_b, Int m, Int n, Int k, const void *alpha, \
		const void *const a[], DataType type_a, Int lda, const void *const b[], DataType type_b, Int ldb, const void *beta, \
		void *const c[], DataType type_c, Int ldc, Int count, ComputeType compute, int) { \
		return extended(#name, type_a, type_b, type_c, compute, handle, \
			{{}, op_a, op_b, m, n, k, alpha, beta, {address(a), lda}, {address(b), ldb}, {address(c), ldc}, count, true}); \
	}

GEMM_EX(cublasGemmEx, int)
GEMM_EX(cublasGemmEx_64, std::int64_t)
GEMM_STRIDED_EX(cublasGemmStridedBatchedEx, int)
GEMM_STRIDED_EX(cublasGemmStridedBatchedEx_64, std::int64_t)
GEMM_BATCHED_EX(cublasGemmBatchedEx, int)
GEMM_BATCHED_EX(cublasGemmBatchedEx_64, std::int64_t)

#define GEMM_GROUPED_EX(name, Int) \
	SIM_API Status name(BlasHandle handle, const Transpose op_a[], const Transpose op_b[], const Int m[], const Int n[], const Int k[], \
		const void *alpha, const void *const a[], DataType type_a, const Int lda[], const void *const b[], DataType type_b, \
		const Int ldb[], const void *beta, void *const c[], DataType type_c, const Int ldc[], Int count, const Int sizes[], \
		ComputeType compute) { \
		return grouped_extended<Int>(#name, type_a, type_b, type_c, compute, handle, \
			{op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, count, sizes}); \
	}

GEMM_GROUPED_EX(cublasGemmGroupedBatchedEx, int)
GEMM_GROUPED_EX(cublasGemmGroupedBatchedEx_64, std::int64_t)
