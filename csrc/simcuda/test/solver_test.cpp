#include "fixture.h"

#include <cmath>

using namespace simcuda::solver;

namespace {

double conjugated(double x) { return x; }
std::complex<double> conjugated(std::complex<double> x) { return std::conj(x); }

auto gesvd_size(double) { return cusolverDnDgesvd_bufferSize; }
auto gesvd_size(std::complex<double>) { return cusolverDnZgesvd_bufferSize; }
auto gesvd(double) { return cusolverDnDgesvd; }
auto gesvd(std::complex<double>) { return cusolverDnZgesvd; }

template <class T> T number(unsigned &seed) {
	seed = seed * 1664525u + 1013904223u;
	return T(static_cast<double>(seed >> 8) * 0x1p-24 - 0.5);
}

// distance is how far u diag(s) vh is from a, and u and vh from having
// orthonormal columns and rows.
template <class T>
double distance(const std::vector<T> &a, const std::vector<T> &u, const std::vector<double> &s, const std::vector<T> &vh, std::size_t m,
	std::size_t n, std::size_t u_columns) {
	double worst = 0;
	auto note = [&](T x) { worst = std::max(worst, std::abs(x)); };
	for (std::size_t i = 0; i < m; i++) {
		for (std::size_t j = 0; j < n; j++) {
			T sum{};
			for (std::size_t l = 0; l < n; l++)
				sum += u[i + l * m] * s[l] * vh[l + j * n];
			note(sum - a[i + j * m]);
		}
	}
	for (std::size_t p = 0; p < u_columns; p++) {
		for (std::size_t q = 0; q < u_columns; q++) {
			T sum{};
			for (std::size_t i = 0; i < m; i++)
				sum += conjugated(u[i + p * m]) * u[i + q * m];
			note(sum - T(p == q));
		}
	}
	for (std::size_t p = 0; p < n; p++) {
		for (std::size_t q = 0; q < n; q++) {
			T sum{};
			for (std::size_t j = 0; j < n; j++)
				sum += vh[p + j * n] * conjugated(vh[q + j * n]);
			note(sum - T(p == q));
		}
	}
	return worst;
}

template <class T> void decompose(const std::vector<T> &a, int m, int n, signed char job_u, std::vector<double> *values = nullptr) {
	auto s = stream();
	SolverHandle handle{};
	OK(cusolverDnCreate(&handle));
	OK(cusolverDnSetStream(handle, s));
	int count = 0;
	OK(gesvd_size(T{})(handle, m, n, &count));
	auto rows = static_cast<std::size_t>(m), columns = static_cast<std::size_t>(n), u_columns = job_u == 'A' ? rows : columns;
	auto pa = on_device(a, s), pu = allocate(rows * u_columns * sizeof(T)), pv = allocate(columns * columns * sizeof(T)),
	     ps = allocate(columns * 8), work = allocate(static_cast<std::size_t>(count) * sizeof(T)), info = allocate(4);
	OK(gesvd(T{})(handle, job_u, 'S', m, n, pointer<T>(pa), m, pointer<double>(ps), pointer<T>(pu), m, pointer<T>(pv), n,
		pointer<T>(work), count, nullptr, pointer<int>(info)));
	EQUAL(get<int>(info, 1, s)[0], 0);
	auto sigma = get<double>(ps, columns, s);
	for (std::size_t i = 1; i < columns; i++)
		CHECK(sigma[i - 1] >= sigma[i]);
	CHECK(distance(a, get<T>(pu, rows * u_columns, s), sigma, get<T>(pv, columns * columns, s), rows, columns, u_columns) < 1e-13);
	CHECK(get<T>(pa, rows * columns, s) != a);
	if (values)
		*values = sigma;
	OK(cusolverDnDestroy(handle));
}

} // namespace

TEST("a singular value decomposition multiplies back, thin and full") {
	use(0);
	unsigned seed = 1;
	std::vector<double> a(9 * 6);
	std::vector<std::complex<double>> z(7 * 5);
	for (auto &x : a)
		x = number<double>(seed);
	for (auto &x : z)
		x = {number<double>(seed), number<double>(seed)};
	decompose(a, 9, 6, 'S');
	decompose(a, 9, 6, 'A');
	decompose(z, 7, 5, 'S');
	decompose(z, 7, 5, 'A');
}

TEST("singular values of a matrix that lacks rank are zero") {
	use(0);
	std::vector<double> sigma;
	decompose<double>({3, 0, 0, 0, -4, 0, 0, 0, 0}, 3, 3, 'S', &sigma);
	CHECK(sigma == (std::vector<double>{4, 3, 0}));
	decompose<double>(std::vector<double>{1, 1, 1, 1, 2, 2, 2, 2}, 4, 2, 'A', &sigma);
	CHECK(std::abs(sigma[0] - std::sqrt(20.0)) < 1e-14 && sigma[1] < 1e-14);
}

TEST("wide matrices are refused, as cuSOLVER refuses them") {
	use(0);
	SolverHandle handle{};
	OK(cusolverDnCreate(&handle));
	int count = 0;
	EQUAL(cusolverDnDgesvd_bufferSize(handle, 2, 3, &count), status_invalid_value);
	EQUAL(weir_sim_live("cusolver"), 1);
	OK(cusolverDnDestroy(handle));
	EQUAL(cusolverDnDestroy(handle), status_not_initialized);
}
