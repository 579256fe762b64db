#include "fixture.h"

#include <cmath>

using namespace simcuda::blas;

namespace {

BlasHandle handle(StreamHandle on) {
	BlasHandle made{};
	OK(cublasCreate_v2(&made));
	OK(cublasSetStream_v2(made, on));
	return made;
}

// numbers are small integers, so that every result is exact.
template <class T> std::vector<T> numbers(std::size_t count, unsigned seed) {
	std::vector<T> values(count);
	for (auto &value : values) {
		seed = seed * 1664525u + 1013904223u;
		value = T(static_cast<int>(seed >> 24) % 7 - 3);
		if constexpr (std::is_same_v<T, std::complex<double>>)
			value += std::complex<double>(0, static_cast<int>(seed >> 16 & 255) % 5 - 2);
	}
	return values;
}

template <class T> T at(const std::vector<T> &a, std::size_t offset, int leading, Transpose op, int i, int j) {
	T x = op == no_trans ? a[offset + static_cast<std::size_t>(i + j * leading)] : a[offset + static_cast<std::size_t>(j + i * leading)];
	if constexpr (std::is_same_v<T, std::complex<double>>)
		return op == conj_trans ? std::conj(x) : x;
	return x;
}

// naive is the definition of a product.
template <class T>
void naive(Transpose op_a, Transpose op_b, int m, int n, int k, T alpha, const std::vector<T> &a, std::size_t from_a, int lda,
	const std::vector<T> &b, std::size_t from_b, int ldb, T beta, std::vector<T> &c, std::size_t from_c, int ldc) {
	for (int i = 0; i < m; i++) {
		for (int j = 0; j < n; j++) {
			T sum{};
			for (int l = 0; l < k; l++)
				sum += at(a, from_a, lda, op_a, i, l) * at(b, from_b, ldb, op_b, l, j);
			auto &out = c[from_c + static_cast<std::size_t>(i + j * ldc)];
			out = beta == T{} ? alpha * sum : alpha * sum + beta * out;
		}
	}
}

} // namespace

TEST("a product is what the definition says, in every form of its operands") {
	use(0);
	auto s = stream();
	auto h = handle(s);
	constexpr int m = 3, n = 4, k = 5, ld = 7;
	for (auto op_a : {no_trans, trans, conj_trans}) {
		for (auto op_b : {no_trans, trans, conj_trans}) {
			for (double beta : {0.0, -2.0}) {
				auto a = numbers<double>(ld * 7, 1), b = numbers<double>(ld * 7, 2), c = numbers<double>(ld * n, 3);
				auto pa = on_device(a, s), pb = on_device(b, s), pc = on_device(c, s);
				double alpha = 3;
				OK(cublasDgemm_v2(h, op_a, op_b, m, n, k, &alpha, pointer<double>(pa), ld, pointer<double>(pb), ld, &beta,
					pointer<double>(pc), ld));
				naive(op_a, op_b, m, n, k, alpha, a, 0, ld, b, 0, ld, beta, c, 0, ld);
				CHECK(get<double>(pc, c.size(), s) == c);
			}
		}
	}
	OK(cublasDestroy_v2(h));
}

TEST("batches of complex products go by strides, also downwards") {
	use(0);
	using Z = std::complex<double>;
	auto s = stream();
	auto h = handle(s);
	constexpr int m = 2, n = 3, k = 4, count = 3;
	auto a = numbers<Z>(k * m * count, 4), b = numbers<Z>(k * n * count, 5), c = numbers<Z>(m * n * count, 6);
	auto pa = on_device(a, s), pb = on_device(b, s), pc = on_device(c, s);
	Z alpha(1, 2), beta(0, 1);
	OK(cublasZgemmStridedBatched(h, conj_trans, no_trans, m, n, k, &alpha, pointer<Z>(pa), k, k * m,
		pointer<Z>(pb) + 2 * k * n, k, -k * n, &beta, pointer<Z>(pc), m, m * n, count));
	for (std::size_t i = 0; i < count; i++)
		naive(conj_trans, no_trans, m, n, k, alpha, a, i * k * m, k, b, (2 - i) * k * n, k, beta, c, i * m * n, m);
	CHECK(get<Z>(pc, c.size(), s) == c);
	OK(cublasDestroy_v2(h));
}

TEST("batches and groups go by arrays of addresses") {
	use(0);
	auto s = stream();
	auto h = handle(s);
	auto a = numbers<double>(8, 7), b = numbers<double>(8, 8);
	auto pa = on_device(a, s), pb = on_device(b, s), pc = on_device(std::vector<double>(8), s);
	auto arrays = [&](DevicePtr p) { return pointer<double *>(on_device(std::vector<DevicePtr>{p, p + 32}, s)); };
	auto as = arrays(pa), bs = arrays(pb), cs = arrays(pc);
	double one = 1, zero = 0;
	OK(cublasDgemmBatched(h, no_trans, no_trans, 2, 2, 2, &one, as, 2, bs, 2, &zero, cs, 2, 2));
	std::vector<double> want(8);
	for (std::size_t i = 0; i < 2; i++)
		naive(no_trans, no_trans, 2, 2, 2, 1.0, a, 4 * i, 2, b, 4 * i, 2, 0.0, want, 4 * i, 2);
	CHECK(get<double>(pc, 8, s) == want);

	Transpose ops_a[] = {no_trans, trans}, ops_b[] = {no_trans, no_trans};
	int two[] = {2, 2}, ks[] = {2, 1}, leading[] = {2, 2}, sizes[] = {1, 1};
	double alphas[] = {1, -1}, betas[] = {0, 2};
	OK(cublasDgemmGroupedBatched(h, ops_a, ops_b, two, two, ks, alphas, as, leading, bs, leading, betas, cs, leading, 2, sizes));
	naive(no_trans, no_trans, 2, 2, 2, 1.0, a, 0, 2, b, 0, 2, 0.0, want, 0, 2);
	naive(trans, no_trans, 2, 2, 1, -1.0, a, 4, 2, b, 4, 2, 2.0, want, 4, 2);
	CHECK(get<double>(pc, 8, s) == want);
	OK(cublasDestroy_v2(h));
}

TEST("groups of narrow elements have scalars of single precision, and the types that NVIDIA's have") {
	use(0);
	auto s = stream();
	auto h = handle(s);
	// 2, 3 and 4 in float16; 2·3 and -2·4 + 2·3.
	auto p = on_device<std::uint16_t>({0x4000, 0x4200, 0x4400, 0, 0x4200}, s);
	auto arrays = [&](DevicePtr one, DevicePtr two) { return pointer<void *>(on_device(std::vector<DevicePtr>{one, two}, s)); };
	auto as = arrays(p, p), bs = arrays(p + 2, p + 4), cs = arrays(p + 6, p + 8);
	Transpose ops[] = {no_trans, no_trans};
	std::int64_t ones[] = {1, 1};
	std::complex<float> alphas[] = {{1, -1}, 0}, betas[] = {{0, 2}, 0};
	auto multiply = [&](DataType type, ComputeType compute) {
		return cublasGemmGroupedBatchedEx_64(h, ops, ops, ones, ones, ones, alphas, as, type, ones, bs, type, ones, betas, cs, type, ones, 2,
			ones, compute);
	};
	OK(multiply(r16f, compute_32f));
	auto got = get<std::uint16_t>(p, 5, s);
	EQUAL(got[3], 0x4600); // 6
	EQUAL(got[4], 0xc000); // -2
	EQUAL(multiply(c32f, compute_32f), status_not_supported);
	EQUAL(multiply(r32f, compute_32f_fast_16f), status_not_supported);
	EQUAL(multiply(r16f, compute_16f), status_not_supported);
	OK(cublasDestroy_v2(h));
}

TEST("scalars on the device are read in stream order") {
	use(0);
	auto s = stream();
	auto h = handle(s);
	OK(cublasSetPointerMode_v2(h, pointer_mode_device));
	auto p = on_device<double>({2, 3, 100, 0, 0}, s);
	auto stall = weir_sim_stall(s);
	auto x = pointer<double>(p);
	put<double>(p + 24, {5, 1}, s);
	OK(cublasDgemm_v2(h, no_trans, no_trans, 1, 1, 1, x + 3, x, 1, x + 1, 1, x + 4, x + 2, 1));
	weir_sim_release(stall);
	EQUAL(get<double>(p, 3, s)[2], 130);
	OK(cublasDestroy_v2(h));
}

TEST("faster forms of single precision round their operands, the default does not") {
	use(0);
	auto s = stream();
	auto h = handle(s);
	const float fine = 1 + 0x1p-11f, finer = 1 + 0x1p-20f;
	auto p = on_device<float>({fine, finer, 1, 0}, s);
	auto x = pointer<float>(p);
	float one = 1, zero = 0;
	auto product = [&](int operand, auto call) {
		OK(call(x + operand));
		return get<float>(p, 4, s)[3];
	};
	auto plain = [&](float *a) { return cublasSgemm_v2_64(h, no_trans, no_trans, 1, 1, 1, &one, a, 1, x + 2, 1, &zero, x + 3, 1); };
	EQUAL(product(1, plain), finer);
	OK(cublasSetMathMode(h, math_tf32));
	EQUAL(product(1, plain), 1);
	auto as = [&](ComputeType compute) {
		return [&, compute](float *a) {
			return cublasGemmEx(h, no_trans, no_trans, 1, 1, 1, &one, a, r32f, 1, x + 2, r32f, 1, &zero, x + 3, r32f, 1, compute, -1);
		};
	};
	EQUAL(product(1, as(compute_32f)), finer);
	EQUAL(product(0, as(compute_32f_fast_tf32)), 1); // a tie, to even
	EQUAL(product(0, as(compute_32f_fast_16bf)), 1);
	OK(cublasDestroy_v2(h));
}

TEST("half precision is computed in single") {
	use(0);
	auto s = stream();
	auto h = handle(s);
	// 2048 · 1 + 1 · 1 is 2049 in float16 no more, but in float32.
	auto p = on_device<std::uint16_t>({0x6800, 0x3c00, 0x3c00, 0x3c00}, s);
	auto out = on_device<float>({0}, s);
	auto x = pointer<std::uint16_t>(p);
	float one = 1, zero = 0;
	OK(cublasGemmEx(h, no_trans, no_trans, 1, 1, 2, &one, x, r16f, 1, x + 2, r16f, 2, &zero, pointer<float>(out), r32f, 1, compute_32f, -1));
	EQUAL(get<float>(out, 1, s)[0], 2049);
	EQUAL(cublasGemmEx(h, no_trans, no_trans, 1, 1, 2, &one, x, r16f, 1, x + 2, r32f, 2, &zero, x, r16f, 1, compute_32f, -1),
		status_not_supported);
	OK(cublasDestroy_v2(h));
}

TEST("a product of nothing scales, and beta 0 does not read") {
	use(0);
	auto s = stream();
	auto h = handle(s);
	auto p = on_device<double>({NAN, 3}, s);
	auto c = pointer<double>(p);
	double alpha = 1, zero = 0, two = 2;
	OK(cublasDgemm_v2(h, no_trans, no_trans, 1, 1, 0, &alpha, nullptr, 1, nullptr, 1, &zero, c, 1));
	OK(cublasDgemm_v2(h, no_trans, no_trans, 1, 1, 0, &alpha, nullptr, 1, nullptr, 1, &two, c + 1, 1));
	CHECK(get<double>(p, 2, s) == (std::vector<double>{0, 6}));
	OK(cublasDgemm_v2(h, no_trans, no_trans, 0, 1, 1, &alpha, nullptr, 1, nullptr, 1, &two, nullptr, 1));
	OK(cublasDestroy_v2(h));
}

TEST("wrong shapes and handles are refused") {
	use(0);
	auto s = stream();
	auto h = handle(s);
	auto x = pointer<double>(allocate(64));
	double one = 1;
	EQUAL(cublasDgemm_v2(h, no_trans, no_trans, -1, 1, 1, &one, x, 1, x, 1, &one, x, 1), status_invalid_value);
	EQUAL(cublasDgemm_v2(h, no_trans, no_trans, 2, 1, 1, &one, x, 1, x, 1, &one, x, 2), status_invalid_value);
	EQUAL(cublasDgemm_v2(h, no_trans, no_trans, 1, 1, 1, nullptr, x, 1, x, 1, &one, x, 1), status_invalid_value);
	EQUAL(weir_sim_live("cublas"), 1);
	OK(cublasDestroy_v2(h));
	EQUAL(weir_sim_live("cublas"), 0);
	EQUAL(cublasDestroy_v2(h), status_not_initialized);
	EQUAL(cublasDgemm_v2(h, no_trans, no_trans, 1, 1, 1, &one, x, 1, x, 1, &one, x, 1), status_not_initialized);
}

TEST("a product on freed memory ends the context") {
	use(0);
	auto s = stream();
	auto h = handle(s);
	auto p = allocate(8);
	OK(cuMemFree_v2(p));
	auto x = pointer<double>(p);
	double one = 1;
	OK(cublasDgemm_v2(h, no_trans, no_trans, 1, 1, 1, &one, x, 1, x, 1, &one, x, 1));
	EQUAL(cuStreamSynchronize(s), illegal_address);
	EQUAL(cublasDgemm_v2(h, no_trans, no_trans, 1, 1, 1, &one, x, 1, x, 1, &one, x, 1), status_execution_failed);
	OK(cublasDestroy_v2(h));
}

TEST("a workspace that was freed is found, and a new stream forgets it") {
	use(0);
	auto s = stream();
	auto h = handle(s);
	auto p = on_device<double>({1, 1, 0}, s);
	auto x = pointer<double>(p);
	auto workspace = allocate(4096);
	double one = 1, zero = 0;
	auto multiply = [&] { return cublasDgemm_v2(h, no_trans, no_trans, 1, 1, 1, &one, x, 1, x + 1, 1, &zero, x + 2, 1); };
	OK(cublasSetWorkspace_v2(h, pointer<void>(workspace), 4096));
	OK(multiply());
	OK(cuMemFree_v2(workspace));
	OK(cublasSetStream_v2(h, s));
	OK(multiply());
	OK(cuStreamSynchronize(s));
	OK(cublasSetWorkspace_v2(h, pointer<void>(workspace), 4096));
	OK(multiply());
	EQUAL(cuStreamSynchronize(s), illegal_address);
	OK(cublasDestroy_v2(h));
}

TEST("a handle works on streams of its own device") {
	use(1);
	auto far = stream();
	use(0);
	auto h = handle(far);
	auto x = pointer<double>(allocate(8));
	double one = 1;
	EQUAL(cublasDgemm_v2(h, no_trans, no_trans, 1, 1, 1, &one, x, 1, x, 1, &one, x, 1), status_invalid_value);
	CHECK(mentions(misuse_text(), "on a stream of device 1"));
	OK(cublasDestroy_v2(h));
}

TEST("a kernel of one device reads another's memory only where peer access is on") {
	auto far = use(1);
	auto p = on_device<double>({3, 4}, nullptr);
	OK(cuCtxSynchronize());
	use(0);
	auto s = stream();
	auto h = handle(s);
	auto out = allocate(8);
	auto x = pointer<double>(p);
	double one = 1, zero = 0;
	auto multiply = [&] { return cublasDgemm_v2(h, no_trans, no_trans, 1, 1, 1, &one, x, 1, x + 1, 1, &zero, pointer<double>(out), 1); };
	OK(cuCtxEnablePeerAccess(far, 0));
	OK(multiply());
	EQUAL(get<double>(out, 1, s)[0], 12);
	EQUAL(cuCtxEnablePeerAccess(far, 0), peer_access_already_enabled);
	OK(cuCtxDisablePeerAccess(far));
	OK(multiply());
	EQUAL(cuStreamSynchronize(s), illegal_address);
	OK(cublasDestroy_v2(h));
}
