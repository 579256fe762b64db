// The body of a job entry: the entry point's arguments come as a block of bytes.
//
// The block has the parameters in the order of their declaration, each aligned as
// its type is, its size rounded up to 8: a handle (8 bytes), a view (152, inline), a
// deposit (8, its address), a number, an output (of the size of what it points to).
#pragma once

#include "raftrkt/deposit.h"
#include "raftrkt/error.hpp"
#include "raftrkt/job.h"

#include <array>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>

namespace raftrkt {

// job_number: int32, int64, uint64, float32, float64, whatever their C names are.
template <class T>
concept job_number = std::same_as<T, float> || std::same_as<T, double> || std::same_as<T, int> ||
                     (sizeof(T) == 8 && (std::same_as<T, long> || std::same_as<T, long long> ||
                                         std::same_as<T, unsigned long> || std::same_as<T, unsigned long long>));

// job_output is a pointer to a number that the entry point writes.
template <class T>
concept job_output = std::is_pointer_v<T> && job_number<std::remove_pointer_t<T>>;

// job_parameter is what an entry point may take to be a job: the handle, views,
// deposits, numbers and outputs.
template <class T>
concept job_parameter = std::same_as<T, void *> || std::same_as<T, const rr_view *> || std::same_as<T, rr_deposit *> ||
                        job_number<T> || job_output<T>;

namespace detail {

// stored is what the block has for a parameter.
template <class T> struct stored_as {
	using type = T;
};
template <> struct stored_as<const rr_view *> {
	using type = rr_view;
};
template <job_output T> struct stored_as<T> {
	using type = std::remove_pointer_t<T>;
};
template <class T> using stored = typename stored_as<T>::type;

template <job_parameter... A> struct job_block {
	static constexpr std::size_t count = sizeof...(A);

	// The offset of each parameter and, last, the size.
	static constexpr std::array<std::size_t, count + 1> offsets = [] {
		std::array<std::size_t, count + 1> at{};
		constexpr std::array<std::size_t, count> sizes{sizeof(stored<A>)...}, aligns{alignof(stored<A>)...};
		std::size_t end = 0;
		for (std::size_t i = 0; i < count; i++) {
			at[i] = (end + aligns[i] - 1) / aligns[i] * aligns[i];
			end = at[i] + sizes[i];
		}
		at[count] = (end + 7) / 8 * 8;
		return at;
	}();
	static constexpr std::size_t size = offsets[count];

	// argument answers the parameter whose bytes are at slot.
	template <class T> static T argument(std::byte *slot) {
		if constexpr (std::same_as<T, const rr_view *>) {
			const auto *view = reinterpret_cast<const rr_view *>(slot);
			return view->rank == RR_RANK_ABSENT ? nullptr : view;
		} else if constexpr (job_output<T>) {
			return reinterpret_cast<T>(slot);
		} else {
			T value;
			std::memcpy(&value, slot, sizeof value);
			return value;
		}
	}

	template <class T> static void write_back(std::byte *to, const std::byte *from) {
		if constexpr (job_output<T>) std::memcpy(to, from, sizeof(stored<T>));
	}

	// call runs F on a copy of the block, whose alignment the caller need not keep,
	// and writes the outputs back.
	template <auto F> static int call(std::byte *args) {
		return [&]<std::size_t... I>(std::index_sequence<I...>) {
			alignas(8) std::byte block[size ? size : 1];
			std::memcpy(block, args, size);
			const int status = F(argument<A>(block + offsets[I])...);
			(write_back<A>(args + offsets[I], block + offsets[I]), ...);
			return status;
		}(std::index_sequence_for<A...>{});
	}
};

template <class F> struct job_signature;
template <job_parameter... A> struct job_signature<int (*)(A...)> {
	using block = job_block<A...>;
};
template <job_parameter... A> struct job_signature<int (*)(A...) noexcept> {
	using block = job_block<A...>;
};
template <auto F> using block_of = typename job_signature<decltype(F)>::block;

} // namespace detail

// job_entry_point is a function that can be a job: it answers int and takes nothing
// but job parameters.
template <auto F>
concept job_entry_point = requires { typename detail::block_of<F>; };

// job_args_size is the size of the block for an entry point.
template <auto F>
	requires job_entry_point<F>
inline constexpr std::size_t job_args_size = detail::block_of<F>::size;

// run_job calls F with the arguments in the block, writes its outputs back, and
// records how it ended, with the message and kind that it left in slot, its library's
// error slot. A view of rank RR_RANK_ABSENT is given as NULL. A block of another size
// is refused (logic); that types of the same size were exchanged goes unseen.
template <auto F>
	requires job_entry_point<F>
void run_job(void *args, std::size_t args_len, rr_job_outcome *outcome, error_slot &slot) noexcept {
	static_assert(sizeof slot.message == sizeof outcome->message);
	int status = RR_ERROR;
	const int unpacked = translate_exceptions(slot, [&] {
		if (args_len != job_args_size<F>)
			throw logic_error("the argument block is " + std::to_string(args_len) + " bytes; the job expects " +
			                  std::to_string(job_args_size<F>));
		if (args_len) require(args, "the argument block");
		status = detail::block_of<F>::template call<F>(static_cast<std::byte *>(args));
	});
	if (unpacked != RR_OK) status = unpacked;
	outcome->status = status;
	outcome->kind = status == RR_OK ? RR_KIND_GENERIC : slot.kind;
	if (status == RR_OK)
		outcome->message[0] = '\0';
	else
		std::memcpy(outcome->message, slot.message, std::strlen(slot.message) + 1);
}

} // namespace raftrkt
