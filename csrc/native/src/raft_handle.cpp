// A handle on a session's stream, with its handles of cuBLAS and cuSOLVER. Memory is
// RMM's current device resource.
#include "raftrkt/error.hpp"
#include "resources.hpp"

#include <cublas_v2.h>
#include <cusolverDn.h>
#include <rmm/mr/per_device_resource.hpp>

namespace raftrkt::library {

namespace {

// borrowed puts a library's handle that somebody else owns in the place of one that
// RAFT would make.
template <class Library, raft::resource::resource_type Type> class borrowed : public raft::resource::resource_factory {
public:
	explicit borrowed(void *handle) : handle_(static_cast<Library>(handle)) {}
	raft::resource::resource_type get_resource_type() override { return Type; }
	raft::resource::resource *make_resource() override { return new loan(handle_); }

private:
	struct loan : raft::resource::resource {
		explicit loan(Library handle) : handle(handle) {}
		void *get_resource() override { return &handle; }
		Library handle;
	};
	Library handle_;
};

} // namespace

std::unique_ptr<handle_t> make_handle(int32_t device, void *stream, void *cublas, void *cusolver) {
	using namespace raft::resource;
	auto handle = std::make_unique<handle_t>(cuda::stream_ref(static_cast<cudaStream_t>(stream)));
	if (cublas) handle->add_resource_factory(std::make_shared<borrowed<cublasHandle_t, CUBLAS_HANDLE>>(cublas));
	if (cusolver)
		handle->add_resource_factory(std::make_shared<borrowed<cusolverDnHandle_t, CUSOLVER_DN_HANDLE>>(cusolver));
	// RAFT asks for the current device at the first use, which may be anywhere.
	if (handle->get_device() != device) throw logic_error("resources: another device is current");
	return handle;
}

} // namespace raftrkt::library
