#include "fixture.h"

#include <cmath>

using namespace simcuda::solver;

namespace {

double conjugated(double x) { return x; }
std::complex<double> conjugated(std::complex<double> x) { return std::conj(x); }

DataType type_of(double) { return r64f; }
DataType type_of(std::complex<double>) { return c64f; }

// Solver is a handle with parameters.
struct Solver {
	SolverHandle handle{};
	ParamsHandle params{};

	Solver() {
		OK(cusolverDnCreate(&handle));
		OK(cusolverDnCreateParams(&params));
	}
	~Solver() {
		OK(cusolverDnDestroyParams(params));
		OK(cusolverDnDestroy(handle));
	}
	Status size(DataType type, signed char job_u, std::int64_t m, std::int64_t n, std::size_t *bytes) {
		std::size_t host = 1;
		auto status = cusolverDnXgesvd_bufferSize(handle, params, job_u, 'S', m, n, type, nullptr, m, r64f, nullptr, type, nullptr, m,
			type, nullptr, n, type, bytes, &host);
		return status;
	}
};

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
	Solver solver;
	OK(cusolverDnSetStream(solver.handle, s));
	auto type = type_of(T{});
	std::size_t bytes = 0;
	OK(solver.size(type, job_u, m, n, &bytes));
	auto rows = static_cast<std::size_t>(m), columns = static_cast<std::size_t>(n), u_columns = job_u == 'A' ? rows : columns;
	auto pa = on_device(a, s), pu = allocate(rows * u_columns * sizeof(T)), pv = allocate(columns * columns * sizeof(T)),
	     ps = allocate(columns * 8), work = allocate(bytes), info = allocate(4);
	OK(cusolverDnXgesvd(solver.handle, solver.params, job_u, 'S', m, n, type, pointer<T>(pa), m, r64f, pointer<double>(ps), type,
		pointer<T>(pu), m, type, pointer<T>(pv), n, type, pointer<T>(work), bytes, nullptr, 0, pointer<int>(info)));
	OK(cuStreamQuery(s)); // it has waited
	EQUAL(get<int>(info, 1, s)[0], 0);
	auto sigma = get<double>(ps, columns, s);
	for (std::size_t i = 1; i < columns; i++)
		CHECK(sigma[i - 1] >= sigma[i]);
	CHECK(distance(a, get<T>(pu, rows * u_columns, s), sigma, get<T>(pv, columns * columns, s), rows, columns, u_columns) < 1e-13);
	CHECK(get<T>(pa, rows * columns, s) != a);
	if (values)
		*values = sigma;
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

TEST("a matrix with NaN is misuse") {
	use(0);
	auto before = weir_sim_misuse(nullptr, 0);
	auto s = stream();
	Solver solver;
	OK(cusolverDnSetStream(solver.handle, s));
	std::size_t bytes = 0;
	OK(solver.size(r64f, 'S', 2, 2, &bytes));
	auto pa = on_device(std::vector<double>{1, NAN, 3, 4}, s), pu = allocate(32), pv = allocate(32), ps = allocate(16),
	     work = allocate(bytes), info = allocate(4);
	OK(cusolverDnXgesvd(solver.handle, solver.params, 'S', 'S', 2, 2, r64f, pointer<double>(pa), 2, r64f, pointer<double>(ps), r64f,
		pointer<double>(pu), 2, r64f, pointer<double>(pv), 2, r64f, pointer<double>(work), bytes, nullptr, 0, pointer<int>(info)));
	EQUAL(weir_sim_misuse(nullptr, 0), before + 1);
}

TEST("wide matrices are refused, as cuSOLVER refuses them") {
	use(0);
	SolverHandle handle{};
	{
		Solver solver;
		std::size_t bytes = 0;
		EQUAL(solver.size(r64f, 'S', 2, 3, &bytes), status_invalid_value);
		EQUAL(weir_sim_live("cusolver"), 2);
		handle = solver.handle;
	}
	EQUAL(weir_sim_live("cusolver"), 0);
	EQUAL(cusolverDnDestroy(handle), status_not_initialized);
}
