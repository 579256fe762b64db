#include "kernel.h"

#include "../../kernels/twins.h"

#include <cstring>
#include <map>

namespace simcuda {

namespace {

std::size_t bytes_of_type(int type) {
	switch (type) {
	case WEIR_FLOAT16:
	case WEIR_BFLOAT16:
		return 2;
	case WEIR_FLOAT32:
	case WEIR_INT32:
		return 4;
	case WEIR_COMPLEX128:
		return 16;
	default:
		return 8;
	}
}

// element_bytes is the size of a kernel's elements, by the end of its name:
// a number of bytes or a type.
std::size_t element_bytes(const std::string &kernel) {
	static const std::map<std::string, std::size_t> sizes{{"2", 2}, {"4", 4}, {"8", 8}, {"16", 16}, {"float16", 2},
		{"bfloat16", 2}, {"float32", 4}, {"int32", 4}, {"float64", 8}, {"int64", 8}, {"complex64", 8}, {"complex128", 16}};
	return sizes.at(kernel.substr(kernel.rfind('_') + 1));
}

// span_of is the memory of one operand: from its lowest element to its highest.
Range span_of(const weir_views &views, int operand, std::size_t element) {
	auto low = views.base[operand], high = low;
	int axes = operand == 0 ? views.outer : views.outer + views.inner;
	for (int axis = 0; axis < axes; axis++) {
		auto reach = static_cast<std::uint64_t>((views.extent[axis] - 1) * views.step[operand][axis]);
		(views.step[operand][axis] < 0 ? low : high) += reach;
	}
	return {low, high - low + element};
}

Plan plan_views(const weir_twin &twin, const weir_views &views) {
	if (views.count == 0)
		return {};
	Plan plan;
	for (int operand = 0; operand < twin.operands; operand++) {
		bool unread = operand > 0 && views.inner > 0 && views.inner_count == 0;
		auto element = std::strcmp(twin.name, "weir_convert") == 0 ? bytes_of_type(operand ? views.from : views.to)
									    : element_bytes(twin.name);
		plan.ranges.push_back(unread ? Range{} : span_of(views, operand, element));
	}
	plan.work = [&twin, views, ranges = plan.ranges](std::span<std::byte *const> at) {
		auto moved = views;
		for (std::size_t operand = 0; operand < ranges.size(); operand++)
			moved.base[operand] += reinterpret_cast<std::uint64_t>(at[operand]) - ranges[operand].address;
		twin.run(&moved);
	};
	return plan;
}

// span_of_matrices is the memory of batch column-major matrices.
Range span_of_matrices(std::uint64_t base, std::int64_t rows, std::int64_t columns, std::int64_t leading, std::int64_t batch,
	std::int64_t stride, std::size_t element) {
	if (rows == 0 || columns == 0)
		return {};
	auto last = (batch - 1) * stride;
	auto low = std::min<std::int64_t>(last, 0), high = std::max<std::int64_t>(last, 0);
	auto elements = static_cast<std::uint64_t>(high - low + (columns - 1) * leading + rows);
	return {base + static_cast<std::uint64_t>(low) * element, elements * element};
}

Plan plan_product(const weir_twin &twin, const weir_product &p) {
	if (p.m == 0 || p.n == 0 || p.batch == 0)
		return {};
	auto element = element_bytes(twin.name);
	auto matrices = [&](std::uint64_t base, bool trans, std::int64_t rows, std::int64_t columns, std::int64_t leading,
				std::int64_t stride) {
		if (trans)
			std::swap(rows, columns);
		return span_of_matrices(base, rows, columns, leading, p.batch, stride, element);
	};
	Plan plan;
	plan.ranges = {matrices(p.a, p.trans_a, p.m, p.k, p.lda, p.stride_a), matrices(p.b, p.trans_b, p.k, p.n, p.ldb, p.stride_b),
		matrices(p.c, false, p.m, p.n, p.ldc, p.stride_c)};
	plan.work = [&twin, p, ranges = plan.ranges](std::span<std::byte *const> at) {
		auto moved = p;
		std::uint64_t *bases[] = {&moved.a, &moved.b, &moved.c};
		for (std::size_t i = 0; i < ranges.size(); i++)
			*bases[i] += reinterpret_cast<std::uint64_t>(at[i]) - ranges[i].address;
		twin.run(&moved);
	};
	return plan;
}

template <class P> P parameter_as(const std::vector<std::byte> &bytes) {
	P parameter;
	std::memcpy(&parameter, bytes.data(), sizeof parameter);
	return parameter;
}

std::map<std::string, Kernel> all_kernels() {
	std::map<std::string, Kernel> kernels;
	for (auto twin = weir_twins; twin->name; twin++) {
		auto plan = [twin](const std::vector<std::byte> &parameter) {
			return twin->operands ? plan_views(*twin, parameter_as<weir_views>(parameter))
					      : plan_product(*twin, parameter_as<weir_product>(parameter));
		};
		kernels.emplace(twin->name, Kernel{twin->name, twin->bytes, plan});
	}
	return kernels;
}

} // namespace

const Kernel *find_kernel(const std::string &name) {
	static const auto kernels = all_kernels();
	auto at = kernels.find(name);
	return at == kernels.end() ? nullptr : &at->second;
}

} // namespace simcuda
