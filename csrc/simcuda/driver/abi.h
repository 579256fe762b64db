// The driver's binary interface, as far as the simulator has it. The names are
// the simulator's own, so that this header and NVIDIA's can stand in one file,
// where test/headers_check.cpp compares them.
#pragma once

#include <cstddef>
#include <cstdint>

// SIM_API marks what the libraries export; all else is hidden.
#define SIM_API extern "C" __attribute__((visibility("default")))
#define SIM_SHARED __attribute__((visibility("default")))

namespace simcuda {

using DevicePtr = unsigned long long; // CUdeviceptr
using DeviceOrdinal = int;            // CUdevice
using HostFunction = void (*)(void *); // CUhostFn

// Handles are opaque; see handle.h.
struct ContextHandleTag;
struct StreamHandleTag;
struct EventHandleTag;
struct PoolHandleTag;
struct ModuleHandleTag;
struct FunctionHandleTag;
struct GraphHandleTag;
struct GraphNodeHandleTag;
struct GraphExecHandleTag;
using ContextHandle = ContextHandleTag *;   // CUcontext
using StreamHandle = StreamHandleTag *;     // CUstream
using EventHandle = EventHandleTag *;       // CUevent
using PoolHandle = PoolHandleTag *;         // CUmemoryPool
using ModuleHandle = ModuleHandleTag *;     // CUmodule
using FunctionHandle = FunctionHandleTag *; // CUfunction
using GraphHandle = GraphHandleTag *;         // CUgraph
using GraphNodeHandle = GraphNodeHandleTag *; // CUgraphNode
using GraphExecHandle = GraphExecHandleTag *; // CUgraphExec

// The two streams that have no handle of their own.
inline const auto legacy_stream = reinterpret_cast<StreamHandle>(1);
inline const auto per_thread_stream = reinterpret_cast<StreamHandle>(2);

enum Result : int { // CUresult
	success = 0,
	invalid_value = 1,
	out_of_memory = 2,
	not_initialized = 3,
	no_device = 100,
	invalid_device = 101,
	invalid_image = 200,
	invalid_context = 201,
	ecc_uncorrectable = 214,
	peer_access_unsupported = 217,
	nvlink_uncorrectable = 220,
	invalid_handle = 400,
	illegal_state = 401,
	not_found = 500,
	not_ready = 600,
	illegal_address = 700,
	launch_out_of_resources = 701,
	launch_timeout = 702,
	peer_access_already_enabled = 704,
	peer_access_not_enabled = 705,
	context_is_destroyed = 709,
	device_assert = 710,
	host_memory_already_registered = 712,
	host_memory_not_registered = 713,
	hardware_stack_error = 714,
	illegal_instruction = 715,
	misaligned_address = 716,
	invalid_address_space = 717,
	invalid_pc = 718,
	launch_failed = 719,
	not_permitted = 800,
	not_supported = 801,
	stream_capture_unsupported = 900,
	stream_capture_invalidated = 901,
	stream_capture_merge = 902,
	stream_capture_unmatched = 903,
	stream_capture_unjoined = 904,
	stream_capture_isolation = 905,
	stream_capture_implicit = 906,
	captured_event = 907,
	stream_capture_wrong_thread = 908,
	graph_exec_update_failure = 910,
	unknown = 999,
};

enum StreamFlags : unsigned { stream_default = 0, stream_non_blocking = 1 };
enum EventFlags : unsigned { event_default = 0, event_blocking_sync = 1, event_disable_timing = 2, event_interprocess = 4 };
enum MemoryType : unsigned { memory_type_host = 1, memory_type_device = 2 };

enum PoolAttribute : int { // CUmemPool_attribute
	reuse_follow_event_dependencies = 1,
	reuse_allow_opportunistic = 2,
	reuse_allow_internal_dependencies = 3,
	release_threshold = 4,
	reserved_current = 5,
	reserved_high = 6,
	used_current = 7,
	used_high = 8,
};

enum PointerAttribute : int { // CUpointer_attribute
	pointer_context = 1,
	pointer_memory_type = 2,
	pointer_device_pointer = 3,
	pointer_host_pointer = 4,
	pointer_is_managed = 8,
	pointer_device_ordinal = 9,
	pointer_range_start = 11,
	pointer_range_size = 12,
	pointer_mapped = 13,
	pointer_pool = 17,
};

enum DeviceAttribute : int { // CUdevice_attribute
	max_threads_per_block = 1,
	max_block_dim_x = 2,
	max_block_dim_y = 3,
	max_block_dim_z = 4,
	max_grid_dim_x = 5,
	max_grid_dim_y = 6,
	max_grid_dim_z = 7,
	max_shared_memory_per_block = 8,
	total_constant_memory = 9,
	warp_size = 10,
	max_registers_per_block = 12,
	gpu_overlap = 15,
	multiprocessor_count = 16,
	can_map_host_memory = 19,
	concurrent_kernels = 31,
	pci_bus_id = 33,
	pci_device_id = 34,
	max_threads_per_multiprocessor = 39,
	async_engine_count = 40,
	unified_addressing = 41,
	pci_domain_id = 50,
	compute_capability_major = 75,
	compute_capability_minor = 76,
	stream_priorities_supported = 78,
	max_shared_memory_per_multiprocessor = 81,
	cooperative_launch = 95,
	max_shared_memory_per_block_optin = 97,
	host_register_supported = 99,
	memory_pools_supported = 115,
};

enum LocationType : int { location_invalid = 0, location_device = 1 };
enum AccessFlags : int { access_none = 0, access_read = 1, access_read_write = 3 };

struct Location { // CUmemLocation
	LocationType type;
	int id;
};

struct AccessDescription { // CUmemAccessDesc
	Location location;
	AccessFlags flags;
};

inline constexpr int allocation_pinned = 1; // CU_MEM_ALLOCATION_TYPE_PINNED

struct PoolProperties { // CUmemPoolProps
	int allocation_type;
	int handle_types;
	Location location;
	void *security_attributes;
	std::size_t maximum_size; // 0: no limit but the device's
	unsigned short usage;
	unsigned char reserved[54];
};
static_assert(sizeof(PoolProperties) == 88 && offsetof(PoolProperties, maximum_size) == 24);

struct Uuid { // CUuuid
	char bytes[16];
};

enum CaptureMode : int { capture_global = 0, capture_thread_local = 1, capture_relaxed = 2 }; // CUstreamCaptureMode
enum CaptureStatus : int { capture_none = 0, capture_active = 1, capture_invalidated = 2 };   // CUstreamCaptureStatus

enum NodeType : int { node_kernel = 0, node_memcpy = 1, node_memset = 2, node_host = 3 }; // CUgraphNodeType

enum InstantiateFlags : unsigned long long { instantiate_auto_free = 1, instantiate_node_priority = 8 };

struct KernelNodeParams { // CUDA_KERNEL_NODE_PARAMS_v2
	FunctionHandle function;
	unsigned grid[3], block[3], shared_bytes;
	void **parameters, **extra;
	void *kernel; // looked at only without a function
	ContextHandle context;
};

enum UpdateResult : int { // CUgraphExecUpdateResult
	update_success = 0,
	update_error = 1,
	update_topology_changed = 2,
	update_node_type_changed = 3,
};

struct UpdateInfo { // CUgraphExecUpdateResultInfo
	UpdateResult result;
	GraphNodeHandle node, from;
};

// Markers in cuLaunchKernel's extra argument.
inline void *const launch_parameter_end = nullptr;
inline void *const launch_parameter_buffer = reinterpret_cast<void *>(1);
inline void *const launch_parameter_size = reinterpret_cast<void *>(2);

} // namespace simcuda
