/*
 * Weir's kernels. As CUDA C++ each is a kernel; as C++ each is its twin, a
 * function of the same name that does the whole launch on the processor, which
 * the simulated driver calls (twins.h).
 *
 * An elementwise kernel strides over the grid; each thread turns the number of
 * its element into an offset for each operand (locate). Rejected: one kernel for
 * each rank (more code, and loading it costs more than it saves), and tables of
 * offsets in memory (they would have to be allocated and freed in stream order).
 */
#include "numbers.h"
#include "params.h"

#ifdef __CUDACC__
#define KERNEL extern "C" __global__ void __launch_bounds__(WEIR_BLOCK)
#define PARAMETER(T) const __grid_constant__ T
#define EACH(i, count) \
	for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < (count); i += (int64_t)gridDim.x * blockDim.x)
#else
#include "twins.h"
#define KERNEL extern "C" void
#define PARAMETER(T) const T &
#define EACH(i, count) for (int64_t i = 0; i < (count); i++)
#endif

namespace weir {

/* high is the upper half of the 64 bits of a product. */
WEIR_BOTH uint32_t high(uint32_t a, uint32_t b) { return (uint32_t)((uint64_t)a * b >> 32); }

/*
 * locate adds to at[v], for operands v from first, the offset of element i in
 * axes begin to end-1, the last of them fastest.
 */
template <int first, int last> WEIR_BOTH void locate(const weir_views &p, int begin, int end, int64_t i, int64_t *at) {
	if (p.narrow) {
		uint32_t left = (uint32_t)i;
		for (int k = end - 1; k > begin; k--) {
			uint32_t quotient = (high(left, p.magic[k]) + left) >> p.shift[k];
			uint32_t index = left - quotient * (uint32_t)p.extent[k];
			for (int v = first; v <= last; v++)
				at[v] += index * p.step[v][k];
			left = quotient;
		}
		i = left;
	} else {
		for (int k = end - 1; k > begin; k--) {
			int64_t quotient = i / p.extent[k], index = i - quotient * p.extent[k];
			for (int v = first; v <= last; v++)
				at[v] += index * p.step[v][k];
			i = quotient;
		}
	}
	if (end > begin)
		for (int v = first; v <= last; v++)
			at[v] += i * p.step[v][begin];
}

template <class M> WEIR_BOTH M &memory(const weir_views &p, int operand, int64_t offset) {
	return *(M *)(p.base[operand] + (uint64_t)offset);
}

/* element is the M whose bytes begin at value. */
template <class M> WEIR_BOTH M element(const uint64_t *value) { return (M)value[0]; }
template <> WEIR_BOTH complex<uint64_t> element(const uint64_t *value) { return {value[0], value[1]}; }

template <class M> WEIR_BOTH void copy_one(const weir_views &p, int64_t i) {
	int64_t at[2] = {};
	locate<0, 1>(p, 0, p.outer, i, at);
	memory<M>(p, 0, at[0]) = memory<M>(p, 1, at[1]);
}

template <class M> WEIR_BOTH void fill_one(const weir_views &p, int64_t i, M value) {
	int64_t at[1] = {};
	locate<0, 0>(p, 0, p.outer, i, at);
	memory<M>(p, 0, at[0]) = value;
}

template <class T> WEIR_BOTH void mul_one(const weir_views &p, int64_t i) {
	using M = typename T::memory;
	int64_t at[3] = {};
	locate<0, 2>(p, 0, p.outer, i, at);
	memory<M>(p, 0, at[0]) = T::store(T::load(memory<M>(p, 1, at[1]), p.conj[0]) * T::load(memory<M>(p, 2, at[2]), p.conj[1]));
}

template <class T> WEIR_BOTH void axpby_one(const weir_views &p, int64_t i) {
	using M = typename T::memory;
	int64_t at[2] = {};
	locate<0, 1>(p, 0, p.outer, i, at);
	auto value = T::scalar(p.alpha) * T::load(memory<M>(p, 1, at[1]), p.conj[0]);
	auto beta = T::scalar(p.beta);
	if (!T::zero(beta))
		value = value + beta * T::load(memory<M>(p, 0, at[0]), false);
	memory<M>(p, 0, at[0]) = T::store(value);
}

/* store_integer and store_real end a conversion; see convert_one. */
WEIR_BOTH void store_integer(const weir_views &p, int64_t at, int64_t x) {
	switch (p.to) {
	case WEIR_FLOAT32:
		memory<float>(p, 0, at) = (float)x;
		break;
	case WEIR_FLOAT64:
		memory<double>(p, 0, at) = (double)x;
		break;
	case WEIR_INT32:
		memory<int32_t>(p, 0, at) = (int32_t)x;
		break;
	case WEIR_INT64:
		memory<int64_t>(p, 0, at) = x;
		break;
	case WEIR_COMPLEX64:
		memory<complex<float>>(p, 0, at) = {(float)x, 0};
		break;
	case WEIR_COMPLEX128:
		memory<complex<double>>(p, 0, at) = {(double)x, 0};
		break;
	case WEIR_FLOAT16:
		memory<uint16_t>(p, 0, at) = narrow_half(odd_float((double)x));
		break;
	case WEIR_BFLOAT16:
		memory<uint16_t>(p, 0, at) = narrow_brain(odd_float(odd_double(x)));
		break;
	}
}

WEIR_BOTH void store_real(const weir_views &p, int64_t at, double re, double im) {
	switch (p.to) {
	case WEIR_FLOAT32:
		memory<float>(p, 0, at) = (float)re;
		break;
	case WEIR_FLOAT64:
		memory<double>(p, 0, at) = re;
		break;
	case WEIR_INT32:
		memory<int32_t>(p, 0, at) = (int32_t)re;
		break;
	case WEIR_INT64:
		memory<int64_t>(p, 0, at) = (int64_t)re;
		break;
	case WEIR_COMPLEX64:
		memory<complex<float>>(p, 0, at) = {(float)re, (float)im};
		break;
	case WEIR_COMPLEX128:
		memory<complex<double>>(p, 0, at) = {re, im};
		break;
	case WEIR_FLOAT16:
		memory<uint16_t>(p, 0, at) = narrow_half(odd_float(re));
		break;
	case WEIR_BFLOAT16:
		memory<uint16_t>(p, 0, at) = narrow_brain(odd_float(re));
		break;
	}
}

/*
 * convert_one goes through int64 or through complex double, which hold every
 * element exactly, so that each pair of types rounds once.
 */
WEIR_BOTH void convert_one(const weir_views &p, int64_t i) {
	int64_t at[2] = {};
	locate<0, 1>(p, 0, p.outer, i, at);
	switch (p.from) {
	case WEIR_INT32:
		return store_integer(p, at[0], memory<int32_t>(p, 1, at[1]));
	case WEIR_INT64:
		return store_integer(p, at[0], memory<int64_t>(p, 1, at[1]));
	case WEIR_FLOAT32:
		return store_real(p, at[0], memory<float>(p, 1, at[1]), 0);
	case WEIR_FLOAT64:
		return store_real(p, at[0], memory<double>(p, 1, at[1]), 0);
	case WEIR_FLOAT16:
		return store_real(p, at[0], widen_half(memory<uint16_t>(p, 1, at[1])), 0);
	case WEIR_BFLOAT16:
		return store_real(p, at[0], widen_brain(memory<uint16_t>(p, 1, at[1])), 0);
	case WEIR_COMPLEX64: {
		complex<float> z = memory<complex<float>>(p, 1, at[1]);
		return store_real(p, at[0], z.re, p.conj[0] ? -z.im : z.im);
	}
	case WEIR_COMPLEX128: {
		complex<double> z = memory<complex<double>>(p, 1, at[1]);
		return store_real(p, at[0], z.re, p.conj[0] ? -z.im : z.im);
	}
	}
}

/* partial is the sum of every lanes-th inner element from lane on. */
template <class T> WEIR_BOTH typename T::total partial(const weir_views &p, int64_t from, int lane, int lanes) {
	typename T::total sum{};
	for (int64_t j = lane; j < p.inner_count; j += lanes) {
		int64_t at[2] = {0, from};
		locate<1, 1>(p, p.outer, p.outer + p.inner, j, at);
		sum = sum + T::widen(memory<typename T::memory>(p, 1, at[1]), p.conj[0]);
	}
	return sum;
}

template <class T> WEIR_BOTH void product_one(const weir_product &p, int64_t i) {
	int64_t column = i / p.m, row = i - column * p.m, problem = column / p.n;
	column -= problem * p.n;
	const T *a = (const T *)p.a + problem * p.stride_a + row * (p.trans_a ? p.lda : 1);
	const T *b = (const T *)p.b + problem * p.stride_b + column * (p.trans_b ? 1 : p.ldb);
	int64_t next_a = p.trans_a ? 1 : p.lda, next_b = p.trans_b ? p.ldb : 1;
	T sum = 0;
	for (int64_t l = 0; l < p.k; l++)
		sum += a[l * next_a] * b[l * next_b];
	T *c = (T *)p.c + problem * p.stride_c + column * p.ldc + row;
	*c = (T)p.alpha * sum + (p.beta ? (T)p.beta * *c : 0);
}

#ifdef __CUDACC__
/*
 * sum_all has lanes threads of a block for each element of the result, which add
 * their parts up as a tree: the order of additions depends on the shape alone.
 */
template <class T> __device__ void sum_all(const weir_views &p) {
	__shared__ typename T::total parts[WEIR_BLOCK];
	int thread = threadIdx.x, lane = thread & (p.lanes - 1), group = thread / p.lanes, groups = WEIR_BLOCK / p.lanes;
	for (int64_t first = (int64_t)blockIdx.x * groups; first < p.count; first += (int64_t)gridDim.x * groups) {
		int64_t i = first + group, at[2] = {};
		if (i < p.count) {
			locate<0, 1>(p, 0, p.outer, i, at);
			parts[thread] = partial<T>(p, at[1], lane, p.lanes);
		}
		__syncthreads();
		for (int half = p.lanes / 2; half > 0; half /= 2) {
			if (lane < half && i < p.count)
				parts[thread] = parts[thread] + parts[thread + half];
			__syncthreads();
		}
		if (lane == 0 && i < p.count)
			memory<typename T::memory>(p, 0, at[0]) = T::round(parts[thread]);
		__syncthreads();
	}
}
#else
template <class T> static void sum_all(const weir_views &p) {
	EACH(i, p.count) {
		int64_t at[2] = {};
		locate<0, 1>(p, 0, p.outer, i, at);
		memory<typename T::memory>(p, 0, at[0]) = T::round(partial<T>(p, at[1], 0, 1));
	}
}
#endif

} // namespace weir

#define COPIES(X) X(2, uint16_t) X(4, uint32_t) X(8, uint64_t) X(16, weir::complex<uint64_t>)
#define NUMBERS(X) X(float32) X(float64) X(int32) X(int64) X(complex64) X(complex128) X(float16) X(bfloat16)

#define COPY(bytes, M) \
	KERNEL weir_copy_##bytes(PARAMETER(weir_views) p) { EACH(i, p.count) weir::copy_one<M>(p, i); } \
	KERNEL weir_fill_##bytes(PARAMETER(weir_views) p) { \
		M value = weir::element<M>(p.value); \
		EACH(i, p.count) weir::fill_one<M>(p, i, value); \
	}
COPIES(COPY)

KERNEL weir_convert(PARAMETER(weir_views) p) { EACH(i, p.count) weir::convert_one(p, i); }

#define ARITHMETIC(T) \
	KERNEL weir_mul_##T(PARAMETER(weir_views) p) { EACH(i, p.count) weir::mul_one<weir::T>(p, i); } \
	KERNEL weir_axpby_##T(PARAMETER(weir_views) p) { EACH(i, p.count) weir::axpby_one<weir::T>(p, i); } \
	KERNEL weir_sum_##T(PARAMETER(weir_views) p) { weir::sum_all<weir::T>(p); }
NUMBERS(ARITHMETIC)

#define PRODUCT(T, M) \
	KERNEL weir_product_##T(PARAMETER(weir_product) p) { EACH(i, p.m * p.n * p.batch) weir::product_one<M>(p, i); }
PRODUCT(int32, uint32_t)
PRODUCT(int64, uint64_t)

#ifndef __CUDACC__

template <class P, void (*kernel)(const P &)> static void run(const void *parameters) { kernel(*(const P *)parameters); }

#define VIEWS(name, operands) {#name, operands, sizeof(weir_views), run<weir_views, name>},
#define COPY_TWINS(bytes, M) VIEWS(weir_copy_##bytes, 2) VIEWS(weir_fill_##bytes, 1)
#define ARITHMETIC_TWINS(T) VIEWS(weir_mul_##T, 3) VIEWS(weir_axpby_##T, 2) VIEWS(weir_sum_##T, 2)
#define PRODUCT_TWIN(T) {"weir_product_" #T, 0, sizeof(weir_product), run<weir_product, weir_product_##T>},

const weir_twin weir_twins[] = {
	COPIES(COPY_TWINS)
	VIEWS(weir_convert, 2)
	NUMBERS(ARITHMETIC_TWINS)
	PRODUCT_TWIN(int32)
	PRODUCT_TWIN(int64)
	{}};

#endif
