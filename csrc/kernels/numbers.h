/*
 * Element types: how each lies in memory, what it is computed in, and the
 * conversions, the same bits on the GPU and on the processor. Integers are
 * computed as unsigned, so that they wrap.
 */
#ifndef WEIR_KERNELS_NUMBERS_H
#define WEIR_KERNELS_NUMBERS_H

#include <stdint.h>

#ifdef __CUDACC__
#define WEIR_BOTH __host__ __device__ __forceinline__
#else
#define WEIR_BOTH inline
#endif

namespace weir {

template <class To, class From> WEIR_BOTH To bits(From from) {
	static_assert(sizeof(To) == sizeof(From), "of one size");
	union {
		From from;
		To to;
	} both{from};
	return both.to;
}

template <class R> struct alignas(2 * sizeof(R)) complex {
	R re, im;
};

template <class R> WEIR_BOTH complex<R> operator+(complex<R> a, complex<R> b) { return {a.re + b.re, a.im + b.im}; }
template <class R> WEIR_BOTH complex<R> operator*(complex<R> a, complex<R> b) {
	return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

/* A float16 as float, exactly. */
WEIR_BOTH float widen_half(uint16_t h) {
	uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, fraction = h & 0x3ff;
	if (exponent == 31)
		return bits<float>(sign | 0x7f800000u | fraction << 13);
	if (exponent == 0) {
		float magnitude = (float)fraction * 0x1p-24f;
		return sign ? -magnitude : magnitude;
	}
	return bits<float>(sign | (exponent + 112) << 23 | fraction << 13);
}

/* To float16, to nearest and ties to even. */
WEIR_BOTH uint16_t narrow_half(float f) {
	uint32_t u = bits<uint32_t>(f), sign = u >> 16 & 0x8000;
	u &= 0x7fffffffu;
	if (u > 0x7f800000u)
		return (uint16_t)(sign | 0x7e00 | (u >> 13 & 0x3ff));
	if (u >= 0x477ff000u) /* 65520 and more round to infinity */
		return (uint16_t)(sign | 0x7c00);
	if (u < 0x38800000u) { /* subnormal: the sum is rounded at the place of 2^-24 */
		float sum = bits<float>(u) + 0.5f;
		return (uint16_t)(sign | (bits<uint32_t>(sum) - 0x3f000000u));
	}
	u += 0xfffu + (u >> 13 & 1);
	return (uint16_t)(sign | (u - 0x38000000u) >> 13);
}

WEIR_BOTH float widen_brain(uint16_t b) { return bits<float>((uint32_t)b << 16); }

WEIR_BOTH uint16_t narrow_brain(float f) {
	uint32_t u = bits<uint32_t>(f);
	if ((u & 0x7fffffffu) > 0x7f800000u)
		return (uint16_t)(u >> 16 | 0x40);
	return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

/*
 * x rounded to a float whose last bit is 1 if that was inexact, so that rounding
 * once more, to a narrower type, gives what one rounding of x would (Boldo and
 * Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms
 * using rounding to odd", 2008).
 */
WEIR_BOTH float odd_float(double x) {
	float f = (float)x;
	uint32_t u = bits<uint32_t>(f);
	if ((double)f == x || x != x || (u & 0x7fffffffu) == 0x7f800000u || (u & 1))
		return f;
	double have = (double)f, want = x;
	if (have < 0 || want < 0) {
		have = -have;
		want = -want;
	}
	return bits<float>(have < want ? u + 1 : u - 1);
}

/*
 * x as a double for narrow types to round once: what a double does not hold of a
 * large x becomes one low bit that no narrow type keeps.
 */
WEIR_BOTH double odd_double(int64_t x) {
	const uint64_t low = (1 << 12) - 1;
	uint64_t m = x < 0 ? -(uint64_t)x : (uint64_t)x;
	if (m >> 53 && m & low)
		m = (m & ~low) | (low + 1);
	return x < 0 ? -(double)m : (double)m;
}

/*
 * The element types. memory is how one lies there, compute what it is computed
 * in. A long sum in the elements' own type stands still once it is large, so sums
 * have twice the precision: total is what they are added up in.
 */
struct float32 {
	using memory = float;
	using compute = float;
	static WEIR_BOTH compute load(memory x, bool) { return x; }
	static WEIR_BOTH memory store(compute x) { return x; }
	static WEIR_BOTH compute scalar(const double *z) { return (float)z[0]; }
	using total = double;
	static WEIR_BOTH total widen(memory x, bool) { return x; }
	static WEIR_BOTH memory round(total x) { return (float)x; }
	static WEIR_BOTH bool zero(compute x) { return x == 0; }
};

struct float64 {
	using memory = double;
	using compute = double;
	static WEIR_BOTH compute load(memory x, bool) { return x; }
	static WEIR_BOTH memory store(compute x) { return x; }
	static WEIR_BOTH compute scalar(const double *z) { return z[0]; }
	using total = compute;
	static WEIR_BOTH total widen(memory x, bool) { return x; }
	static WEIR_BOTH memory round(total x) { return x; }
	static WEIR_BOTH bool zero(compute x) { return x == 0; }
};

struct int32 {
	using memory = uint32_t;
	using compute = uint32_t;
	static WEIR_BOTH compute load(memory x, bool) { return x; }
	static WEIR_BOTH memory store(compute x) { return x; }
	static WEIR_BOTH compute scalar(const double *z) { return (uint32_t)(int32_t)z[0]; }
	using total = compute;
	static WEIR_BOTH total widen(memory x, bool) { return x; }
	static WEIR_BOTH memory round(total x) { return x; }
	static WEIR_BOTH bool zero(compute x) { return x == 0; }
};

struct int64 {
	using memory = uint64_t;
	using compute = uint64_t;
	static WEIR_BOTH compute load(memory x, bool) { return x; }
	static WEIR_BOTH memory store(compute x) { return x; }
	static WEIR_BOTH compute scalar(const double *z) { return (uint64_t)(int64_t)z[0]; }
	using total = compute;
	static WEIR_BOTH total widen(memory x, bool) { return x; }
	static WEIR_BOTH memory round(total x) { return x; }
	static WEIR_BOTH bool zero(compute x) { return x == 0; }
};

template <class R> struct complex_number {
	using memory = complex<R>;
	using compute = complex<R>;
	static WEIR_BOTH compute load(memory x, bool conj) { return {x.re, conj ? -x.im : x.im}; }
	static WEIR_BOTH memory store(compute x) { return x; }
	static WEIR_BOTH compute scalar(const double *z) { return {(R)z[0], (R)z[1]}; }
	using total = complex<double>;
	static WEIR_BOTH total widen(memory x, bool conj) { return {x.re, conj ? -x.im : x.im}; }
	static WEIR_BOTH memory round(total x) { return {(R)x.re, (R)x.im}; }
	static WEIR_BOTH bool zero(compute x) { return x.re == 0 && x.im == 0; }
};
using complex64 = complex_number<float>;
using complex128 = complex_number<double>;

struct float16 {
	using memory = uint16_t;
	using compute = float;
	static WEIR_BOTH compute load(memory x, bool) { return widen_half(x); }
	static WEIR_BOTH memory store(compute x) { return narrow_half(x); }
	static WEIR_BOTH compute scalar(const double *z) { return (float)z[0]; }
	using total = double;
	static WEIR_BOTH total widen(memory x, bool) { return widen_half(x); }
	static WEIR_BOTH memory round(total x) { return narrow_half(odd_float(x)); }
	static WEIR_BOTH bool zero(compute x) { return x == 0; }
};

struct bfloat16 {
	using memory = uint16_t;
	using compute = float;
	static WEIR_BOTH compute load(memory x, bool) { return widen_brain(x); }
	static WEIR_BOTH memory store(compute x) { return narrow_brain(x); }
	static WEIR_BOTH compute scalar(const double *z) { return (float)z[0]; }
	using total = double;
	static WEIR_BOTH total widen(memory x, bool) { return widen_brain(x); }
	static WEIR_BOTH memory round(total x) { return narrow_brain(odd_float(x)); }
	static WEIR_BOTH bool zero(compute x) { return x == 0; }
};

} // namespace weir

#endif
