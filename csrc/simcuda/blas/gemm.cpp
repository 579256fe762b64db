#include "gemm.h"

#include "../driver/refusal.h"

#include "../../kernels/numbers.h"

#include <cstring>
#include <vector>

namespace simcuda::blas {

namespace {

// Half and Brain are float16 and bfloat16 as they lie in memory.
struct Half {
	std::uint16_t bits;
};
struct Brain {
	std::uint16_t bits;
};

float widen(Half x) { return weir::widen_half(x.bits); }
float widen(Brain x) { return weir::widen_brain(x.bits); }
template <class T> T widen(T x) { return x; }

template <class To, class From> To narrow(From x) {
	if constexpr (std::is_same_v<To, Half>)
		return {weir::narrow_half(x)};
	else if constexpr (std::is_same_v<To, Brain>)
		return {weir::narrow_brain(x)};
	else
		return static_cast<To>(x);
}

// to_tf32 rounds to the 10 bits of significand that tensor cores take.
float to_tf32(float x) {
	auto bits = weir::bits<std::uint32_t>(x);
	if ((bits & 0x7f800000u) == 0x7f800000u)
		return x;
	bits += 0xfffu + (bits >> 13 & 1);
	return weir::bits<float>(bits & ~0x1fffu);
}

float rounded(float x, Rounding rounding) {
	switch (rounding) {
	case Rounding::tf32:
		return to_tf32(x);
	case Rounding::half:
		return weir::widen_half(weir::narrow_half(x));
	case Rounding::brain:
		return weir::widen_brain(weir::narrow_brain(x));
	case Rounding::none:
		break;
	}
	return x;
}

std::complex<float> rounded(std::complex<float> x, Rounding rounding) {
	return {rounded(x.real(), rounding), rounded(x.imag(), rounding)};
}

template <class T> T rounded(T x, Rounding) { return x; } // double precision has no faster form

float conjugate(float x) { return x; }
double conjugate(double x) { return x; }
template <class R> std::complex<R> conjugate(std::complex<R> x) { return {x.real(), -x.imag()}; }

template <class R> R convert(Scalar x, R) { return static_cast<R>(x.real()); }
template <class R> std::complex<R> convert(Scalar x, std::complex<R>) { return {static_cast<R>(x.real()), static_cast<R>(x.imag())}; }

// element is op(A)'s element in row i and column j.
template <class T, class X> T element(const X *a, std::int64_t leading, Transpose op, std::int64_t i, std::int64_t j) {
	T x = widen(op == no_trans ? a[i + j * leading] : a[j + i * leading]);
	return op == conj_trans ? conjugate(x) : x;
}

// product_of computes in T on elements X, and stores Z.
template <class T, class X, class Z> void product_of(const Product &p) {
	auto a = static_cast<const X *>(p.a), b = static_cast<const X *>(p.b);
	auto c = static_cast<Z *>(p.c);
	T alpha = convert(p.alpha, T{}), beta = convert(p.beta, T{});
	auto k = alpha == T{} ? 0 : p.k;
	auto rows = static_cast<std::size_t>(p.m);

	// op(A), rounded, column after column, so that the inner loop is a plain one.
	std::vector<T> left(rows * static_cast<std::size_t>(k)), sum(rows);
	for (std::int64_t l = 0; l < k; l++)
		for (std::int64_t i = 0; i < p.m; i++)
			left[static_cast<std::size_t>(l * p.m + i)] = rounded(element<T>(a, p.lda, p.op_a, i, l), p.types.rounding);
	for (std::int64_t j = 0; j < p.n; j++) {
		std::fill(sum.begin(), sum.end(), T{});
		for (std::int64_t l = 0; l < k; l++) {
			T right = rounded(element<T>(b, p.ldb, p.op_b, l, j), p.types.rounding);
			const T *column = left.data() + l * p.m;
			for (std::size_t i = 0; i < rows; i++)
				sum[i] += column[i] * right;
		}
		Z *out = c + j * p.ldc;
		for (std::size_t i = 0; i < rows; i++) {
			T value = alpha * sum[i];
			if (beta != T{})
				value += beta * T(widen(out[i]));
			out[i] = narrow<Z>(value);
		}
	}
}

bool is_double(DataType type) { return type == r64f || type == c64f; }
bool is_complex(DataType type) { return type == c32f || type == c64f; }

} // namespace

std::size_t bytes_of(DataType type) {
	switch (type) {
	case r16f:
	case r16bf:
		return 2;
	case r32f:
		return 4;
	case r64f:
	case c32f:
		return 8;
	case c64f:
		return 16;
	}
	refuse(invalid_value);
}

Types types_of(DataType a, DataType b, DataType c, ComputeType compute) {
	bytes_of(a);
	bytes_of(c);
	require(a == b, not_supported);
	bool small = a == r16f || a == r16bf;
	require(c == a || (small && c == r32f), not_supported);
	switch (compute) {
	case compute_64f:
	case compute_64f_pedantic:
		require(is_double(a), not_supported);
		return {a, c, Rounding::none, a};
	case compute_16f:
	case compute_16f_pedantic:
		require(a == r16f && c == r16f, not_supported);
		return {a, c, Rounding::none, r16f};
	case compute_32f:
	case compute_32f_pedantic:
	case compute_32f_fast_16f:
	case compute_32f_fast_16bf:
	case compute_32f_fast_tf32: {
		require(!is_double(a), not_supported);
		bool fast = compute >= compute_32f_fast_16f;
		require(!fast || !small, not_supported);
		auto rounding = compute == compute_32f_fast_16f	   ? Rounding::half
				: compute == compute_32f_fast_16bf ? Rounding::brain
				: compute == compute_32f_fast_tf32 ? Rounding::tf32
								   : Rounding::none;
		return {a, c, rounding, is_complex(a) ? c32f : r32f};
	}
	}
	refuse(invalid_value);
}

Scalar read_scalar(DataType type, const void *at) {
	auto read = [at](auto x) {
		std::memcpy(&x, at, sizeof x);
		return Scalar(widen(x));
	};
	switch (type) {
	case r16f:
		return read(Half{});
	case r16bf:
		return read(Brain{});
	case r32f:
		return read(0.0f);
	case r64f:
		return read(0.0);
	case c32f:
		return read(std::complex<float>{});
	case c64f:
		return read(std::complex<double>{});
	}
	refuse(invalid_value);
}

void multiply(const Product &product) {
	bool wide = product.types.c == r32f;
	switch (product.types.ab) {
	case r16f:
		return wide ? product_of<float, Half, float>(product) : product_of<float, Half, Half>(product);
	case r16bf:
		return wide ? product_of<float, Brain, float>(product) : product_of<float, Brain, Brain>(product);
	case r32f:
		return product_of<float, float, float>(product);
	case r64f:
		return product_of<double, double, double>(product);
	case c32f:
		return product_of<std::complex<float>, std::complex<float>, std::complex<float>>(product);
	case c64f:
		return product_of<std::complex<double>, std::complex<double>, std::complex<double>>(product);
	}
}

} // namespace simcuda::blas
