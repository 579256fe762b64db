// gesvd, in cuSOLVER's form: m >= n, all of it in device memory, A destroyed.
#include "handle.h"
#include "jacobi.h"

namespace simcuda::solver {

namespace {

// Job is how much of U or V^H is wanted.
enum class Job { none, thin, full };

Job job_of(signed char letter) {
	switch (letter) {
	case 'N':
		return Job::none;
	case 'S':
		return Job::thin;
	case 'A':
		return Job::full;
	case 'O':
		refuse(not_supported);
	default:
		refuse(invalid_value);
	}
}

template <class T> struct Arguments {
	signed char job_u, job_v;
	int m, n;
	T *a;
	int lda;
	Real<T> *s;
	T *u;
	int ldu;
	T *vh;
	int ldvh;
	T *work;
	int work_count;
	int *info;
};

int work_needed(int m, int n) { return 4 * n + m; }

template <class T> Range matrix(T *at, std::size_t rows, std::size_t columns, int leading) {
	if (rows == 0 || columns == 0)
		return {};
	return {reinterpret_cast<DevicePtr>(at), ((columns - 1) * static_cast<std::size_t>(leading) + rows) * sizeof(T)};
}

template <class T> void gesvd(const char *function, const LibraryHandle &handle, const Arguments<T> &g) {
	auto stream = stream_of(function, handle);
	require(g.m >= g.n && g.n >= 0 && g.lda >= std::max(g.m, 1), invalid_value);
	auto job_u = job_of(g.job_u), job_v = job_of(g.job_v);
	require(job_u == Job::none || g.ldu >= std::max(g.m, 1), invalid_value);
	require(job_v == Job::none || g.ldvh >= std::max(g.n, 1), invalid_value);
	require(g.work_count >= work_needed(g.m, g.n), invalid_value);

	auto m = static_cast<std::size_t>(g.m), n = static_cast<std::size_t>(g.n);
	auto lda = static_cast<std::size_t>(g.lda), ldu = static_cast<std::size_t>(g.ldu), ldvh = static_cast<std::size_t>(g.ldvh);
	auto u_columns = job_u == Job::full ? m : n;
	Operation operation{.what = function};
	operation.ranges = {matrix(g.a, m, n, g.lda), matrix(g.s, n, 1, g.n),
		job_u == Job::none ? Range{} : matrix(g.u, m, u_columns, g.ldu),
		job_v == Job::none ? Range{} : matrix(g.vh, n, n, g.ldvh), matrix(g.work, static_cast<std::size_t>(g.work_count), 1, 0),
		matrix(g.info, 1, 1, 0)};
	operation.work = [=](std::span<std::byte *const> at) {
		auto a = reinterpret_cast<T *>(at[0]), u = reinterpret_cast<T *>(at[2]), vh = reinterpret_cast<T *>(at[3]);
		Columns<T> copy(m, n);
		for (std::size_t j = 0; j < n; j++) {
			std::copy_n(a + j * lda, m, copy[j]);
			// cuSOLVER leaves nothing useful in A; nobody shall rely on it.
			std::fill_n(reinterpret_cast<std::byte *>(a + j * lda), m * sizeof(T), poison_byte);
		}
		auto svd = decompose(std::move(copy), u_columns);
		std::copy(svd.s.begin(), svd.s.end(), reinterpret_cast<Real<T> *>(at[1]));
		for (std::size_t j = 0; u && j < u_columns; j++)
			std::copy_n(svd.u[j], m, u + j * ldu);
		for (std::size_t j = 0; vh && j < n; j++)
			for (std::size_t i = 0; i < n; i++)
				vh[i + j * ldvh] = conjugate(svd.v[i][j]);
		*reinterpret_cast<int *>(at[5]) = svd.converged ? 0 : 1;
	};
	stream->submit(std::move(operation), BadMemory::fault);
}

} // namespace

} // namespace simcuda::solver

using namespace simcuda;
using namespace simcuda::solver;

#define GESVD(letter, T, R) \
	SIM_API Status cusolverDn##letter##gesvd_bufferSize(SolverHandle handle, int m, int n, int *count) { \
		return call("cusolverDn" #letter "gesvd_bufferSize", [&](Lock &) { \
			find(handle); \
			require(m >= n && n >= 0, invalid_value); \
			answer(count, work_needed(m, n)); \
		}); \
	} \
	SIM_API Status cusolverDn##letter##gesvd(SolverHandle handle, signed char job_u, signed char job_v, int m, int n, T *a, int lda, R *s, \
		T *u, int ldu, T *vh, int ldvh, T *work, int work_count, R *, int *info) { \
		return call("cusolverDn" #letter "gesvd", [&](Lock &) { \
			gesvd<T>("cusolverDn" #letter "gesvd", *find(handle), \
				{job_u, job_v, m, n, a, lda, s, u, ldu, vh, ldvh, work, work_count, info}); \
		}); \
	}

GESVD(S, float, float)
GESVD(D, double, double)
GESVD(C, std::complex<float>, float)
GESVD(Z, std::complex<double>, double)
