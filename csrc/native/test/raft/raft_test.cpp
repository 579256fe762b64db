// The RAFT flavour: what it makes of RAPIDS' exceptions, on any machine; handles,
// views and deposits on a GPU, where there is one. make raft builds it.
#include "raftrkt/deposit.hpp"
#include "raftrkt/view.hpp"
#include "raftrkt_test.h"

#include <cublas_v2.h>
#include <cusolverDn.h>
#include <gtest/gtest.h>
#include <memory>
#include <rmm/device_uvector.hpp>
#include <thrust/system/cuda/error.h>
#include <thrust/system_error.h>

namespace {

#define OK(call) ASSERT_EQ((call), RR_OK) << rr_last_error()

TEST(Raft, ExceptionsOfRapidsAreClassified) {
	const struct {
		int32_t which, kind;
		const char *begins;
	} table[] = {
		{RT_RMM_OUT_OF_MEMORY, RR_KIND_OUT_OF_MEMORY, "std::bad_alloc: out_of_memory: an out_of_memory of rmm"},
		{RT_RMM_BAD_ALLOC, RR_KIND_OUT_OF_MEMORY, "std::bad_alloc: a bad_alloc of rmm"},
		{RT_RMM_CUDA, RR_KIND_CUDA, "a cuda_error of rmm"},
		{RT_RMM_LOGIC, RR_KIND_LOGIC, "a logic_error of rmm"},
		{RT_RAFT_LOGIC, RR_KIND_LOGIC, "a logic_error of raft"},
		{RT_RAFT_CUDA, RR_KIND_CUDA, "CUDA error encountered at: "},
		{RT_RAFT_CUDA_OUT_OF_MEMORY, RR_KIND_OUT_OF_MEMORY, "CUDA error encountered at: "},
		{RT_RAFT_CUBLAS, RR_KIND_CUDA, "cuBLAS error encountered at: "},
		{RT_RAFT_CUBLAS_OUT_OF_MEMORY, RR_KIND_OUT_OF_MEMORY, "cuBLAS error encountered at: "},
		{RT_RAFT_CUSOLVER, RR_KIND_CUDA, "cuSOLVER error encountered at: "},
		{RT_RAFT_CUSOLVER_OUT_OF_MEMORY, RR_KIND_OUT_OF_MEMORY, "cuSOLVER error encountered at: "},
		{RT_RAFT_CUSPARSE, RR_KIND_CUDA, "cuSparse error encountered at: "},
		{RT_RAFT_CUSPARSE_OUT_OF_MEMORY, RR_KIND_OUT_OF_MEMORY, "cuSparse error encountered at: "},
		{RT_RAFT_EXCEPTION, RR_KIND_GENERIC, "another exception of raft"},
		{RT_BAD_ALLOC, RR_KIND_OUT_OF_MEMORY, "std::bad_alloc"},
		{RT_CUDA_OUT_OF_MEMORY, RR_KIND_OUT_OF_MEMORY, "a cuda_error of memory"},
		{RT_CUDA, RR_KIND_CUDA, "a cuda_error"},
		{RT_UNKNOWN, RR_KIND_GENERIC, "unknown exception"},
	};
	for (const auto &row : table) {
		EXPECT_EQ(rt_throw(row.which), RR_ERROR);
		EXPECT_EQ(rt_last_error_kind(), row.kind) << rt_last_error();
		EXPECT_EQ(std::string(rt_last_error()).rfind(row.begins, 0), 0u) << rt_last_error();
	}
}

// The status is the one that was answered, whatever the text of the call says.
TEST(Raft, TheTextOfACallIsNoStatus) {
	const auto kind = [](auto &&body) {
		raftrkt::error_slot slot;
		EXPECT_EQ(raftrkt::translate_exceptions(slot, body), RR_ERROR);
		return slot.kind;
	};
	EXPECT_EQ(kind([] { raft::check_cuda_error(cudaErrorIllegalAddress, "Reason=cudaErrorMemoryAllocation: "); }), RR_KIND_CUDA);
	EXPECT_EQ(kind([] { raft::check_cuda_error(cudaErrorMemoryAllocation, "Reason=none"); }), RR_KIND_OUT_OF_MEMORY);
	EXPECT_EQ(kind([] { throw raft::cublas_error("no reason is given"); }), RR_KIND_CUDA);
	EXPECT_EQ(kind([] { throw rmm::cuda_error("CUDA error at: f:1: cudaErrorMemoryAllocation out of memory"); }), RR_KIND_OUT_OF_MEMORY);
	EXPECT_EQ(kind([] { throw ::cuda::cuda_error(cudaErrorMemoryAllocation, "of libcu++"); }), RR_KIND_OUT_OF_MEMORY);
	EXPECT_EQ(kind([] { throw ::cuda::cuda_error(cudaErrorInvalidValue, "of libcu++"); }), RR_KIND_CUDA);
	EXPECT_EQ(kind([] { throw thrust::system_error(cudaErrorMemoryAllocation, thrust::cuda_category()); }), RR_KIND_OUT_OF_MEMORY);
	EXPECT_EQ(kind([] { throw thrust::system_error(cudaErrorInvalidValue, thrust::cuda_category()); }), RR_KIND_CUDA);
	EXPECT_EQ(kind([] { throw thrust::system_error(2, thrust::generic_category()); }), RR_KIND_GENERIC);
}

TEST(Raft, TheTagIsOfItsVersions) {
	const auto *tag = rr_abi();
	EXPECT_EQ(tag->raft_major, RAFT_VERSION_MAJOR);
	EXPECT_EQ(tag->raft_minor, RAFT_VERSION_MINOR);
	EXPECT_EQ(tag->rmm_major, RMM_VERSION_MAJOR);
	EXPECT_EQ(tag->cccl_major, CCCL_MAJOR_VERSION);
	EXPECT_EQ(tag->cuda_runtime, CUDART_VERSION);
	EXPECT_EQ(tag->resource_types, raft::resource::LAST_KEY);
	EXPECT_EQ(tag->handle_size, static_cast<int64_t>(sizeof(raft::handle_t)));
	EXPECT_EQ(rt_check_abi(tag), RR_OK) << rt_last_error();
	rr_abi_tag host{};
	host.abi_version = RR_ABI_VERSION;
	host.raft_major = 26;
	host.raft_minor = 10;
	host.handle_size = 32;
	EXPECT_EQ(rt_check_abi(&host), RR_ERROR); // a library of the host flavour
}

struct OnAGPU : testing::Test {
	cudaStream_t stream = nullptr;
	cublasHandle_t cublas = nullptr;
	cusolverDnHandle_t cusolver = nullptr;
	rr_resources *r = nullptr;
	void *handle = nullptr;
	void SetUp() override {
		int devices = 0;
		if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) GTEST_SKIP() << "no GPU";
		ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
		ASSERT_EQ(cublasCreate(&cublas), CUBLAS_STATUS_SUCCESS);
		ASSERT_EQ(cusolverDnCreate(&cusolver), CUSOLVER_STATUS_SUCCESS);
		OK(rr_resources_create(0, stream, cublas, cusolver, &r));
		OK(rr_resources_handle(r, &handle));
	}
	void TearDown() override {
		if (!r) return;
		OK(rr_resources_release(r));
		// What was borrowed is still there.
		EXPECT_EQ(cublasDestroy(cublas), CUBLAS_STATUS_SUCCESS);
		EXPECT_EQ(cusolverDnDestroy(cusolver), CUSOLVER_STATUS_SUCCESS);
		EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
	}
	raft::handle_t &raft_handle() { return raftrkt::handle_of(handle); }
};

TEST_F(OnAGPU, TheHandleHasWhatWasBorrowed) {
	EXPECT_EQ(raft_handle().get_stream().get(), stream);
	EXPECT_EQ(raft_handle().get_cublas_handle(), cublas);
	EXPECT_EQ(raft_handle().get_cusolver_dn_handle(), cusolver);
	EXPECT_EQ(raftrkt::device_of(raft_handle()), 0);
	cudaStream_t used = nullptr;
	EXPECT_EQ(cublasGetStream(cublas, &used), CUBLAS_STATUS_SUCCESS);
	EXPECT_EQ(used, stream);
	OK(rr_resources_synchronize(r));
}

TEST_F(OnAGPU, ADeviceThatIsNotThereIsRefused) {
	rr_resources *none = r;
	EXPECT_EQ(rr_resources_create(1000, nullptr, nullptr, nullptr, &none), RR_ERROR);
	EXPECT_EQ(rr_last_error_kind(), RR_KIND_CUDA);
	EXPECT_STREQ(rr_last_error(), "cudaSetDevice: cudaErrorInvalidDevice: invalid device ordinal");
	EXPECT_EQ(none, nullptr);
	EXPECT_EQ(cudaGetLastError(), cudaSuccess); // nothing stays behind
}

// What is queued takes tens of milliseconds, and is done when the scope is left, by
// whichever way.
TEST_F(OnAGPU, EveryExitSynchronises) {
	rmm::device_uvector<char> block(size_t{1} << 30, raft_handle().get_stream());
	const auto queue = [&] {
		for (int i = 0; i < 100; i++) ASSERT_EQ(cudaMemsetAsync(block.data(), i, block.size(), stream), cudaSuccess);
		ASSERT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
	};
	{
		raftrkt::sync_guard guard(raft_handle());
		queue();
	}
	EXPECT_EQ(cudaStreamQuery(stream), cudaSuccess);
	raftrkt::error_slot slot;
	EXPECT_EQ(raftrkt::translate_exceptions(slot, [&] {
		raftrkt::sync_guard guard(raft_handle());
		queue();
		throw std::runtime_error("first");
	}), RR_ERROR);
	EXPECT_STREQ(slot.message, "first");
	EXPECT_EQ(cudaStreamQuery(stream), cudaSuccess);
	raftrkt::sync_guard guard(raft_handle());
	queue();
	guard.finish();
	EXPECT_EQ(cudaStreamQuery(stream), cudaSuccess);
}

TEST_F(OnAGPU, ViewsAnswerRaftsViews) {
	rmm::device_uvector<float> memory(600, stream);
	rr_view x{};
	x.dtype = RR_DTYPE_FLOAT32;
	x.rank = 2;
	x.shape[0] = 300;
	x.shape[1] = x.strides[0] = 2;
	x.strides[1] = 1;
	OK(rr_view_bind(memory.data(), 2400, RR_MEMORY_DEVICE, 0, 0, &x));
	const auto m = raftrkt::matrix_view<const float, raft::row_major, int>(&x, "X");
	EXPECT_EQ(m.data_handle(), memory.data());
	EXPECT_EQ(m.extent(0), 300);
	EXPECT_EQ(m.extent(1), 2);
	try {
		raftrkt::matrix_view<const float, raft::col_major, int64_t>(&x, "X");
		ADD_FAILURE();
	} catch (const raftrkt::logic_error &error) {
		EXPECT_STREQ(error.what(), "X: expected col-major, got row-major 300x2");
	}
	x.rank = 1;
	x.strides[0] = 1;
	EXPECT_EQ((raftrkt::vector_view<float>(&x, "X").extent(0)), 300);
}

struct owner {
	rmm::device_uvector<double> numbers;
	rmm::device_uvector<int32_t> more;
};

TEST_F(OnAGPU, DepositsHoldDeviceMemory) {
	rr_deposit out{};
	out.handle = handle;
	auto mine = std::make_unique<owner>(owner{rmm::device_uvector<double>(10, stream), rmm::device_uvector<int32_t>(12, stream)});
	raftrkt::deposit(&out, "out", raft_handle(), std::move(mine),
	                 {raftrkt::region(mine->numbers), raftrkt::region(mine->more.data(), 3, 4, raftrkt::layout::col_major)});
	EXPECT_EQ(out.count, 2);
	EXPECT_EQ(out.regions[0].memory, RR_MEMORY_DEVICE);
	EXPECT_EQ(out.regions[0].device, 0);
	EXPECT_EQ(out.regions[1].strides[1], 3);
	OK(rr_deposit_release(r, &out));

	double host[4];
	void *pinned, *managed;
	ASSERT_EQ(cudaMallocHost(&pinned, 64), cudaSuccess);
	ASSERT_EQ(cudaMallocManaged(&managed, 64), cudaSuccess);
	for (void *elsewhere : {static_cast<void *>(host), pinned}) {
		rr_deposit refused{};
		refused.handle = handle;
		auto whose = std::make_unique<int>();
		try {
			raftrkt::deposit(&refused, "out", raft_handle(), std::move(whose), {raftrkt::region(static_cast<double *>(elsewhere), 4)});
			ADD_FAILURE();
		} catch (const raftrkt::logic_error &error) {
			EXPECT_STREQ(error.what(), "out: region 0: not in memory of device 0");
		}
	}
	rr_deposit filled{};
	filled.handle = handle;
	auto whose = std::make_unique<int>();
	raftrkt::deposit(&filled, "out", raft_handle(), std::move(whose), {raftrkt::region(static_cast<double *>(managed), 4)});
	EXPECT_EQ(filled.regions[0].memory, RR_MEMORY_MANAGED);
	OK(rr_deposit_release(r, &filled));
	EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
	EXPECT_EQ(cudaFree(managed), cudaSuccess);
}

TEST_F(OnAGPU, ADepositOfTheTestLibrary) {
	rr_deposit out{};
	out.handle = handle;
	ASSERT_EQ(rt_deposit(handle, 2, 100, &out), RR_OK) << rt_last_error();
	double numbers[100];
	ASSERT_EQ(cudaMemcpy(numbers, out.regions[1].data, sizeof numbers, cudaMemcpyDeviceToHost), cudaSuccess);
	for (int i = 0; i < 100; i++) EXPECT_EQ(numbers[i], i + 1);
	const auto releases = rt_releases();
	OK(rr_deposit_release(r, &out));
	EXPECT_EQ(rt_releases(), releases + 1);
}

} // namespace
