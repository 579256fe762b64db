// The singular value decomposition by one-sided Jacobi rotations: slow, short
// and accurate (Golub and Van Loan, Matrix Computations, 4th edition, 8.6.3).
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <limits>
#include <numeric>
#include <vector>

namespace simcuda::solver {

template <class T> struct RealOf {
	using Type = T;
};
template <class R> struct RealOf<std::complex<R>> {
	using Type = R;
};
template <class T> using Real = typename RealOf<T>::Type;

inline float conjugate(float x) { return x; }
inline double conjugate(double x) { return x; }
template <class R> std::complex<R> conjugate(std::complex<R> x) { return std::conj(x); }

// Columns is a matrix of rows × count numbers, column after column.
template <class T> struct Columns {
	std::size_t rows, count;
	std::vector<T> numbers;

	Columns(std::size_t rows, std::size_t count) : rows(rows), count(count), numbers(rows * count) {}
	T *operator[](std::size_t j) { return numbers.data() + j * rows; }
	const T *operator[](std::size_t j) const { return numbers.data() + j * rows; }
};

template <class T> T inner(const T *x, const T *y, std::size_t n) {
	T sum{};
	for (std::size_t i = 0; i < n; i++)
		sum += conjugate(x[i]) * y[i];
	return sum;
}

// Svd is A = U diag(s) V^H for rows >= columns: u has A's shape or is square, s
// descends, v is square.
template <class T> struct Svd {
	Columns<T> u;
	std::vector<Real<T>> s;
	Columns<T> v;
	bool converged;
};

// rotate makes columns p and q of a orthogonal, and does the same to v. It says
// whether they were not before. Squares of lengths up to negligible do not count:
// columns that are mere rounding would be turned until they underflow.
template <class T> bool rotate(Columns<T> &a, Columns<T> &v, std::size_t p, std::size_t q, Real<T> negligible) {
	using R = Real<T>;
	R alpha = std::real(inner(a[p], a[p], a.rows)), beta = std::real(inner(a[q], a[q], a.rows));
	T gamma = inner(a[p], a[q], a.rows);
	R size = std::abs(gamma);
	// As near as the rounding of the sums lets them come.
	if (std::min(alpha, beta) <= negligible || size <= std::numeric_limits<R>::epsilon() * R(a.rows) * std::sqrt(alpha) * std::sqrt(beta))
		return false;
	T phase = gamma / size;
	R zeta = (beta - alpha) / (2 * size);
	R t = std::copysign(R(1), zeta) / (std::abs(zeta) + std::sqrt(1 + zeta * zeta));
	R c = 1 / std::sqrt(1 + t * t), s = c * t;
	auto turn = [&](T *x, T *y, std::size_t n) {
		for (std::size_t i = 0; i < n; i++) {
			T left = x[i], right = conjugate(phase) * y[i];
			x[i] = c * left - s * right;
			y[i] = s * left + c * right;
		}
	};
	turn(a[p], a[q], a.rows);
	turn(v[p], v[q], v.rows);
	return true;
}

// complete replaces the columns of u from first on by ones that make all of
// them orthonormal (Gram and Schmidt, twice, on unit vectors).
template <class T> void complete(Columns<T> &u, std::size_t first) {
	std::size_t unit = 0;
	for (std::size_t j = first; j < u.count; j++) {
		for (;; unit++) {
			T *column = u[j];
			std::fill_n(column, u.rows, T{});
			column[unit] = T(1);
			for (int pass = 0; pass < 2; pass++) {
				for (std::size_t k = 0; k < j; k++) {
					T overlap = inner(u[k], column, u.rows);
					for (std::size_t i = 0; i < u.rows; i++)
						column[i] -= overlap * u[k][i];
				}
			}
			Real<T> length = std::sqrt(std::real(inner(column, column, u.rows)));
			// Of the unit vectors one at least is this long outside of what there is.
			if (length * length * Real<T>(2 * u.rows) >= 1) {
				for (std::size_t i = 0; i < u.rows; i++)
					column[i] /= length;
				break;
			}
		}
	}
}

// scaled answers x·2^exponent.
inline float scaled(float x, int exponent) { return std::ldexp(x, exponent); }
inline double scaled(double x, int exponent) { return std::ldexp(x, exponent); }
template <class R> std::complex<R> scaled(std::complex<R> x, int exponent) {
	return {std::ldexp(x.real(), exponent), std::ldexp(x.imag(), exponent)};
}

// decompose answers u with u_columns columns, from a.count to a.rows. In between
// the matrix is divided by a power of 2, so that no square over- or underflows.
template <class T> Svd<T> decompose(Columns<T> a, std::size_t u_columns) {
	using R = Real<T>;
	constexpr int most_sweeps = 60;
	auto n = a.count;
	R largest = 0;
	for (T x : a.numbers)
		largest = std::max({largest, std::abs(std::real(x)), std::abs(std::imag(x))});
	int exponent = 0;
	std::frexp(largest, &exponent);
	for (T &x : a.numbers)
		x = scaled(x, -exponent);
	Columns<T> v(n, n);
	for (std::size_t j = 0; j < n; j++)
		v[j][j] = T(1);
	constexpr R epsilon = std::numeric_limits<R>::epsilon();
	R negligible = 0;
	for (std::size_t j = 0; j < n; j++)
		negligible += epsilon * epsilon * std::real(inner(a[j], a[j], a.rows));
	bool turned = true;
	for (int sweep = 0; turned && sweep < most_sweeps; sweep++) {
		turned = false;
		for (std::size_t p = 0; p < n; p++)
			for (std::size_t q = p + 1; q < n; q++)
				turned |= rotate(a, v, p, q, negligible);
	}

	std::vector<R> length(n);
	for (std::size_t j = 0; j < n; j++)
		length[j] = std::sqrt(std::real(inner(a[j], a[j], a.rows)));
	std::vector<std::size_t> order(n);
	std::iota(order.begin(), order.end(), std::size_t{0});
	std::stable_sort(order.begin(), order.end(), [&](auto i, auto j) { return length[i] > length[j]; });

	Svd<T> svd{Columns<T>(a.rows, u_columns), std::vector<R>(n), Columns<T>(n, n), !turned};
	std::size_t rank = 0;
	for (std::size_t j = 0; j < n; j++) {
		auto from = order[j];
		svd.s[j] = length[from];
		std::copy_n(v[from], n, svd.v[j]);
		if (svd.s[j] > svd.s[0] * std::numeric_limits<R>::epsilon() * R(n)) {
			std::transform(a[from], a[from] + a.rows, svd.u[j], [&](T x) { return x / length[from]; });
			rank++;
		}
	}
	complete(svd.u, rank);
	for (R &s : svd.s)
		s = scaled(s, exponent);
	return svd;
}

} // namespace simcuda::solver
