#include "raftrkt/error.hpp"
#include "resources.hpp"

namespace raftrkt::library {

std::unique_ptr<handle_t> make_handle(int32_t device, void *stream, void *cublas, void *cusolver) {
	if (stream || cublas || cusolver)
		throw logic_error("resources: the host flavour takes no stream and no library's handle");
	auto handle = std::make_unique<handle_t>();
	handle->device = device;
	return handle;
}

} // namespace raftrkt::library
