// gesvd, in cuSOLVER's form: m >= n, all of it in device memory, A destroyed. As
// NVIDIA's, it returns when the matrix has been decomposed.
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

struct Shape {
	signed char job_u, job_v;
	std::int64_t m, n;
	std::int64_t lda, ldu, ldvh;
	DataType a, s, u, vh, compute;

	void check() const {
		require(m >= n && n >= 0 && lda >= std::max<std::int64_t>(m, 1), invalid_value);
		require(job_of(job_u) == Job::none || ldu >= std::max<std::int64_t>(m, 1), invalid_value);
		require(job_of(job_v) == Job::none || ldvh >= std::max<std::int64_t>(n, 1), invalid_value);
		bool single = a == r32f || a == c32f;
		require((single || a == r64f || a == c64f) && s == (single ? r32f : r64f), invalid_value);
		require(u == a && vh == a && compute == a, invalid_value);
	}
	std::size_t element() const { return a == r32f ? 4 : a == c64f ? 16 : 8; }
	std::size_t work_bytes() const { return static_cast<std::size_t>(4 * n + m) * element(); }
};

struct Addresses {
	DevicePtr a, s, u, vh, work, info;
};

Range matrix(DevicePtr at, std::size_t rows, std::size_t columns, std::int64_t leading, std::size_t element) {
	if (rows == 0 || columns == 0)
		return {};
	return {at, ((columns - 1) * static_cast<std::size_t>(leading) + rows) * element};
}

// decompose_at answers whether A was finite.
template <class T> bool decompose_at(const Shape &g, int info, std::span<std::byte *const> at) {
	auto m = static_cast<std::size_t>(g.m), n = static_cast<std::size_t>(g.n);
	auto lda = static_cast<std::size_t>(g.lda), ldu = static_cast<std::size_t>(g.ldu), ldvh = static_cast<std::size_t>(g.ldvh);
	auto u_columns = job_of(g.job_u) == Job::full ? m : n;
	auto a = reinterpret_cast<T *>(at[0]), u = reinterpret_cast<T *>(at[2]), vh = reinterpret_cast<T *>(at[3]);
	Columns<T> copy(m, n);
	bool finite = true;
	for (std::size_t j = 0; j < n; j++) {
		std::copy_n(a + j * lda, m, copy[j]);
		for (std::size_t i = 0; i < m; i++)
			finite &= std::isfinite(std::real(copy[j][i])) && std::isfinite(std::imag(copy[j][i]));
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
	*reinterpret_cast<int *>(at[5]) = info ? info : svd.converged ? 0 : 1;
	return finite;
}

void gesvd(const LibraryHandle &handle, const Shape &g, const Addresses &p, std::size_t work_bytes, Lock &lock) {
	constexpr auto function = "cusolverDnXgesvd";
	auto stream = stream_of(function, handle);
	g.check();
	require(work_bytes >= g.work_bytes(), invalid_value);
	auto m = static_cast<std::size_t>(g.m), n = static_cast<std::size_t>(g.n);
	auto job_u = job_of(g.job_u), job_v = job_of(g.job_v);
	auto element = g.element();
	Operation operation{.what = function};
	operation.ranges = {matrix(p.a, m, n, g.lda, element), matrix(p.s, n, 1, g.n, g.s == r32f ? 4 : 8),
		job_u == Job::none ? Range{} : matrix(p.u, m, job_u == Job::full ? m : n, g.ldu, element),
		job_v == Job::none ? Range{} : matrix(p.vh, n, n, g.ldvh, element), Range{p.work, g.work_bytes()}, Range{p.info, sizeof(int)}};
	auto finite = std::make_shared<bool>(true);
	int info = enter("info of cusolverDnXgesvd"); // what a test asked for
	operation.work = [g, info, finite](std::span<std::byte *const> at) {
		switch (g.a) {
		case r32f:
			*finite = decompose_at<float>(g, info, at);
			break;
		case r64f:
			*finite = decompose_at<double>(g, info, at);
			break;
		case c32f:
			*finite = decompose_at<std::complex<float>>(g, info, at);
			break;
		case c64f:
			*finite = decompose_at<std::complex<double>>(g, info, at);
			break;
		}
	};
	stream->require_not_capturing();
	stream->submit(std::move(operation), BadMemory::fault);
	stream->synchronize(lock);
	if (!*finite)
		misuse("cusolverDnXgesvd: a matrix with NaN or infinity, with which NVIDIA's iterates for seconds or minutes");
}

} // namespace

} // namespace simcuda::solver

using namespace simcuda;
using namespace simcuda::solver;

SIM_API Status cusolverDnXgesvd_bufferSize(SolverHandle handle, ParamsHandle params, signed char job_u, signed char job_v, std::int64_t m,
	std::int64_t n, DataType type_a, const void *, std::int64_t lda, DataType type_s, const void *, DataType type_u, const void *,
	std::int64_t ldu, DataType type_vh, const void *, std::int64_t ldvh, DataType compute, std::size_t *device, std::size_t *host) {
	return call("cusolverDnXgesvd_bufferSize", [&](Lock &) {
		find(handle);
		require_params(params);
		Shape shape{job_u, job_v, m, n, lda, ldu, ldvh, type_a, type_s, type_u, type_vh, compute};
		shape.check();
		answer(device, shape.work_bytes());
		answer(host, std::size_t{0});
	});
}

SIM_API Status cusolverDnXgesvd(SolverHandle handle, ParamsHandle params, signed char job_u, signed char job_v, std::int64_t m,
	std::int64_t n, DataType type_a, void *a, std::int64_t lda, DataType type_s, void *s, DataType type_u, void *u, std::int64_t ldu,
	DataType type_vh, void *vh, std::int64_t ldvh, DataType compute, void *work, std::size_t work_bytes, void *, std::size_t, int *info) {
	return call("cusolverDnXgesvd", [&](Lock &lock) {
		auto address = [](void *at) { return reinterpret_cast<DevicePtr>(at); };
		require_params(params);
		gesvd(*find(handle), {job_u, job_v, m, n, lda, ldu, ldvh, type_a, type_s, type_u, type_vh, compute},
			{address(a), address(s), address(u), address(vh), address(work), address(info)}, work_bytes, lock);
	});
}
