#include "leaf.hpp"

#include <raft/matrix/select_k.cuh>

namespace weirraft {
namespace {

template <class T>
void select_k(raft::handle_t &handle, bool smallest, const rr_view *va, const rr_view *vvalues, const rr_view *vindices) {
	using raftrkt::detail::refuse;
	const auto a = raftrkt::matrix_view<const T>(va, "a");
	const auto rows = a.extent(0), n = a.extent(1);
	const auto values = raftrkt::matrix_view<T>(vvalues, "values", rows);
	const auto k = values.extent(1);
	const auto indices = raftrkt::matrix_view<int64_t>(vindices, "indices", rows, k);
	if (k < 1 || k > n) refuse("values", "expected 1 to " + raftrkt::detail::counted(n, "column") + ", got " + std::to_string(k));
	if (!std::in_range<int>(rows) || !std::in_range<int>(k))
		refuse("values", raftrkt::detail::shape_text(*vvalues) + " do not fit RAFT's index of 32 bits");
	if (rows == 0) return;
	// The radix methods order any elements. The others take infinity for no element.
	// Which radix method is RAFT's own choice where it takes one.
	const auto method = n > 16862 && rows <= 1020 ? raft::matrix::SelectAlgo::kRadix11bits : raft::matrix::SelectAlgo::kRadix11bitsExtraPass;
	raft::matrix::select_k<T, int64_t>(handle, a, std::nullopt, values, indices, smallest, true, method);
}

} // namespace
} // namespace weirraft

int wr_select_k(void *handle, void *stream, int32_t smallest, const rr_view *a, const rr_view *values,
                const rr_view *indices) {
	return weirraft::leaf(handle, stream, {{"a", a}, {"values", values}, {"indices", indices}}, [&](raft::handle_t &h) {
		weirraft::typed(a, "a", [&](auto t) { weirraft::select_k<decltype(t)>(h, smallest != 0, a, values, indices); });
	});
}
