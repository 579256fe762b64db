#include "product.h"

#include <algorithm>

namespace simcuda::blas {

namespace {

struct Shape {
	std::int64_t rows, columns;
};

Shape stored(Transpose op, std::int64_t rows, std::int64_t columns) {
	return op == no_trans ? Shape{rows, columns} : Shape{columns, rows};
}

void require_shape(const Batch &b) {
	require(b.m >= 0 && b.n >= 0 && b.k >= 0 && b.count >= 0, invalid_value);
	for (auto op : {b.op_a, b.op_b})
		require(op == no_trans || op == trans || op == conj_trans, invalid_value);
	auto least = [](std::int64_t rows) { return std::max<std::int64_t>(rows, 1); };
	require(b.a.leading >= least(stored(b.op_a, b.m, b.k).rows), invalid_value);
	require(b.b.leading >= least(stored(b.op_b, b.k, b.n).rows), invalid_value);
	require(b.c.leading >= least(b.m), invalid_value);
}

// extent is the bytes from a matrix's first element to its last.
std::size_t extent(Shape shape, std::int64_t leading, DataType type) {
	if (shape.rows == 0 || shape.columns == 0)
		return 0;
	return static_cast<std::size_t>((shape.columns - 1) * leading + shape.rows) * bytes_of(type);
}

// range_of is the memory of all matrices of an operand, or of their addresses.
Range range_of(const Operand &operand, std::size_t matrix_bytes, const Batch &batch, DataType type) {
	if (matrix_bytes == 0)
		return {};
	if (batch.arrays)
		return {operand.at, static_cast<std::size_t>(batch.count) * sizeof(DevicePtr)};
	auto last = (batch.count - 1) * operand.stride * static_cast<std::int64_t>(bytes_of(type));
	auto before = static_cast<std::size_t>(std::max<std::int64_t>(-last, 0));
	auto after = static_cast<std::size_t>(std::max<std::int64_t>(last, 0));
	return {operand.at - before, before + after + matrix_bytes};
}

// Matrices finds the matrices of an operand when the work is done.
class Matrices {
public:
	Matrices(const Context &context, const Operand &operand, Range range, std::size_t matrix_bytes, const Batch &batch, DataType type)
		: context_(context), operand_(operand), range_(range), matrix_bytes_(matrix_bytes), arrays_(batch.arrays),
		  element_(bytes_of(type)) {}

	// find answers matrix i, when range lies at at.
	std::byte *find(std::byte *at, std::int64_t i) const {
		if (matrix_bytes_ == 0)
			return nullptr;
		if (arrays_)
			return live_memory(context_, {reinterpret_cast<const DevicePtr *>(at)[i], matrix_bytes_});
		return at + (operand_.at - range_.address) + i * operand_.stride * static_cast<std::int64_t>(element_);
	}

private:
	const Context &context_;
	Operand operand_;
	Range range_;
	std::size_t matrix_bytes_;
	bool arrays_;
	std::size_t element_;
};

} // namespace

void submit(const char *function, const Handle &handle, const Batch &batch) {
	auto stream = stream_of(function, handle);
	require_shape(batch);
	require(batch.alpha && batch.beta, invalid_value);
	if (batch.m == 0 || batch.n == 0 || batch.count == 0)
		return;

	bool on_device = handle.pointer_mode == pointer_mode_device;
	auto scalar_type = batch.types.scalar;
	Scalar alpha = on_device ? 1 : read_scalar(scalar_type, batch.alpha);
	Scalar beta = on_device ? 1 : read_scalar(scalar_type, batch.beta);
	auto scalar_range = [&](const void *at) {
		return on_device ? Range{reinterpret_cast<DevicePtr>(at), bytes_of(scalar_type)} : Range{};
	};

	bool reads = alpha != Scalar(0);
	auto bytes_a = reads ? extent(stored(batch.op_a, batch.m, batch.k), batch.a.leading, batch.types.ab) : 0;
	auto bytes_b = reads ? extent(stored(batch.op_b, batch.k, batch.n), batch.b.leading, batch.types.ab) : 0;
	auto bytes_c = extent({batch.m, batch.n}, batch.c.leading, batch.types.c);
	Operation operation{.what = function};
	operation.ranges = {range_of(batch.a, bytes_a, batch, batch.types.ab), range_of(batch.b, bytes_b, batch, batch.types.ab),
		range_of(batch.c, bytes_c, batch, batch.types.c), scalar_range(batch.alpha), scalar_range(batch.beta), handle.workspace};
	const auto &context = *stream->context;
	Matrices a(context, batch.a, operation.ranges[0], bytes_a, batch, batch.types.ab);
	Matrices b(context, batch.b, operation.ranges[1], bytes_b, batch, batch.types.ab);
	Matrices c(context, batch.c, operation.ranges[2], bytes_c, batch, batch.types.c);
	operation.work = [=, lda = batch.a.leading, ldb = batch.b.leading, ldc = batch.c.leading, types = batch.types, op_a = batch.op_a,
			     op_b = batch.op_b, m = batch.m, n = batch.n, k = batch.k,
			     count = batch.count](std::span<std::byte *const> at) {
		Product product{types, op_a, op_b, m, n, k, alpha, beta, nullptr, nullptr, nullptr, lda, ldb, ldc};
		if (on_device) {
			product.alpha = read_scalar(scalar_type, at[3]);
			product.beta = read_scalar(scalar_type, at[4]);
		}
		for (std::int64_t i = 0; i < count; i++) {
			product.a = a.find(at[0], i);
			product.b = b.find(at[1], i);
			product.c = c.find(at[2], i);
			multiply(product);
		}
	};
	stream->submit(std::move(operation), BadMemory::fault);
}

Types types_for(const Handle &handle, DataType type) {
	bool tf32 = (handle.math_mode & ~math_mode_flags) == math_tf32;
	bool is_double = type == r64f || type == c64f;
	return types_of(type, type, type, is_double ? compute_64f : tf32 ? compute_32f_fast_tf32 : compute_32f);
}

} // namespace simcuda::blas
