#include "fixture.h"

#include "../../kernels/params.h"

namespace {

FunctionHandle kernel(const char *name) {
	ModuleHandle module{};
	FunctionHandle function{};
	OK(cuModuleLoadData(&module, "any image"));
	OK(cuModuleGetFunction(&function, module, name));
	return function;
}

template <class P> Result launch(FunctionHandle function, StreamHandle on, P &parameter) {
	void *parameters[] = {&parameter};
	return cuLaunchKernel(function, 1, 1, 1, WEIR_BLOCK, 1, 1, 0, on, parameters, nullptr);
}

// line is a view of count float64, each step bytes after the one before.
weir_views line(std::int64_t count, DevicePtr out, std::int64_t out_step, DevicePtr a, std::int64_t a_step) {
	weir_views views{};
	views.base[0] = out;
	views.base[1] = a;
	views.count = views.extent[0] = count;
	views.step[0][0] = out_step;
	views.step[1][0] = a_step;
	views.outer = 1;
	return views;
}

} // namespace

TEST("a kernel's twin does its work in stream order, with the parameter of the call") {
	use(0);
	auto s = stream();
	auto a = on_device<double>({1, 2, 3}, s), out = allocate(24);
	auto stall = weir_sim_stall(s);
	auto views = line(3, out, 8, a + 16, -8);
	OK(launch(kernel("weir_copy_8"), s, views));
	views = {};
	weir_sim_release(stall);
	CHECK(get<double>(out, 3, s) == (std::vector<double>{3, 2, 1}));
}

TEST("a kernel whose view leaves its memory ends the context") {
	use(0);
	auto s = stream();
	auto a = on_device<double>({1, 2, 3}, s), out = allocate(24);
	auto views = line(4, out, 8, a, 0);
	OK(launch(kernel("weir_copy_8"), s, views));
	EQUAL(cuStreamSynchronize(s), illegal_address);
	CHECK(mentions(misuse_text(), "weir_copy_8: 32 bytes"));
}

TEST("a product of integers wraps") {
	use(0);
	auto s = stream();
	auto a = on_device<std::int64_t>({std::int64_t{1} << 62}, s), b = on_device<std::int64_t>({6}, s), c = allocate(8);
	weir_product p{};
	p.a = a;
	p.b = b;
	p.c = c;
	p.m = p.n = p.k = p.batch = p.lda = p.ldb = p.ldc = p.alpha = 1;
	OK(launch(kernel("weir_product_int64"), s, p));
	EQUAL(get<std::int64_t>(c, 1, s)[0], static_cast<std::int64_t>(std::uint64_t{1} << 63));
}

TEST("only known kernels are found") {
	use(0);
	ModuleHandle module{};
	FunctionHandle function{};
	OK(cuModuleLoadData(&module, "any image"));
	EQUAL(cuModuleGetFunction(&function, module, "unknown"), not_found);
	EQUAL(cuModuleLoadData(&module, nullptr), invalid_value);
}

TEST("a kernel runs on streams of its own device") {
	use(1);
	auto far = stream();
	use(0);
	auto views = line(1, allocate(8), 8, allocate(8), 8);
	EQUAL(launch(kernel("weir_copy_8"), far, views), invalid_handle);
	CHECK(mentions(misuse_text(), "is launched on a stream of device 1"));
}

TEST("a grid that no device has is refused") {
	use(0);
	auto function = kernel("weir_copy_8");
	auto views = line(1, allocate(8), 8, allocate(8), 8);
	void *parameters[] = {&views};
	auto s = stream();
	EQUAL(cuLaunchKernel(function, 0, 1, 1, 1, 1, 1, 0, s, parameters, nullptr), invalid_value);
	EQUAL(cuLaunchKernel(function, 1, 1, 1, 1025, 1, 1, 0, s, parameters, nullptr), invalid_value);
}
