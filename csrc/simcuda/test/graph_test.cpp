#include "fixture.h"

#include "../../kernels/params.h"

#include <cstring>
#include <thread>

namespace {

void begin(StreamHandle on, CaptureMode mode = capture_relaxed) { OK(cuStreamBeginCapture_v2(on, mode)); }

GraphHandle end(StreamHandle on) {
	GraphHandle graph{};
	OK(cuStreamEndCapture(on, &graph));
	return graph;
}

GraphExecHandle instantiate(GraphHandle graph) {
	GraphExecHandle executable{};
	OK(cuGraphInstantiateWithFlags(&executable, graph, 0));
	return executable;
}

CaptureStatus status(StreamHandle of) {
	CaptureStatus value{};
	OK(cuStreamIsCapturing(of, &value));
	return value;
}

std::vector<GraphNodeHandle> nodes(GraphHandle of) {
	std::size_t count = 0;
	OK(cuGraphGetNodes(of, nullptr, &count));
	std::vector<GraphNodeHandle> all(count);
	OK(cuGraphGetNodes(of, all.data(), &count));
	return all;
}

std::size_t dependencies(GraphNodeHandle of) {
	std::size_t count = 0;
	OK(cuGraphNodeGetDependencies(of, nullptr, &count));
	return count;
}

void copy(DevicePtr to, DevicePtr from, StreamHandle on) { OK(cuMemcpyAsync(to, from, 8, on)); }

// follow makes a stream wait for another.
void follow(StreamHandle behind, StreamHandle front) { OK(cuStreamWaitEvent(behind, record(front), 0)); }

// spoiled ends a capture that a violation made invalid.
void spoiled(StreamHandle stream) {
	EQUAL(status(stream), capture_invalidated);
	EQUAL(cuMemsetD8Async(allocate(8), 0, 8, stream), stream_capture_invalidated);
	GraphHandle graph{};
	EQUAL(cuStreamEndCapture(stream, &graph), stream_capture_invalidated);
	CHECK(!graph);
	EQUAL(status(stream), capture_none);
	EQUAL(weir_sim_live("graph"), 0);
	OK(cuStreamSynchronize(stream));
}

FunctionHandle copies() {
	ModuleHandle module{};
	FunctionHandle function{};
	OK(cuModuleLoadData(&module, "any image"));
	OK(cuModuleGetFunction(&function, module, "weir_copy_8"));
	return function;
}

weir_views element(DevicePtr out, DevicePtr a) {
	weir_views views{};
	views.base[0] = out;
	views.base[1] = a;
	views.count = views.extent[0] = 1;
	views.step[0][0] = views.step[1][0] = 8;
	views.outer = 1;
	return views;
}

} // namespace

TEST("what is captured is done by each launch of its graph, and not before") {
	use(0);
	auto s = stream();
	auto a = on_device<std::int64_t>({1}, s), b = on_device<std::int64_t>({0}, s);
	begin(s);
	EQUAL(status(s), capture_active);
	copy(b, a, s);
	OK(cuMemsetD8Async(a, 1, 1, s));
	auto graph = end(s);
	EQUAL(status(s), capture_none);
	EQUAL(get<std::int64_t>(b, 1, s)[0], 0);
	auto executable = instantiate(graph);
	OK(cuGraphDestroy(graph)); // it lives on in what was instantiated
	for (std::int64_t value : {5, 7}) {
		put<std::int64_t>(a, {value}, s);
		OK(cuGraphUpload(executable, s));
		OK(cuGraphLaunch(executable, s));
		EQUAL(get<std::int64_t>(b, 1, s)[0], value);
		EQUAL(get<std::int64_t>(a, 1, s)[0], 1);
	}
	OK(cuGraphExecDestroy(executable));
	EQUAL(weir_sim_live("graph"), 0);
	EQUAL(weir_sim_live("graph-exec"), 0);
	EQUAL(misuse_text(), "");
}

TEST("a wait for a captured event forks, and another joins") {
	use(0);
	auto s = stream(), other = stream();
	auto a = on_device<std::int64_t>({3}, s), b = allocate(8), c = allocate(8);
	OK(cuStreamSynchronize(s)); // the launch below is on the other stream
	begin(s);
	copy(b, a, s);
	follow(other, s);
	EQUAL(status(other), capture_active);
	copy(c, b, other);
	OK(cuMemsetD8Async(a, 0, 8, s));
	follow(s, other);
	copy(a, c, s);
	CaptureStatus now{};
	GraphHandle under_way{};
	const GraphNodeHandle *tail{};
	std::size_t count{};
	std::uint64_t first{}, second{};
	OK(cuStreamGetCaptureInfo_v2(s, &now, &first, &under_way, &tail, &count));
	OK(cuStreamGetCaptureInfo_v2(other, &now, &second, nullptr, nullptr, nullptr));
	CHECK(first == second && count == 1);
	auto last = *tail;
	auto graph = end(s);
	CHECK(graph == under_way);
	EQUAL(status(other), capture_none);
	auto all = nodes(graph);
	EQUAL(all.size(), 4u);
	CHECK(all.back() == last);
	EQUAL(dependencies(all[0]), 0u);
	EQUAL(dependencies(all[1]), 1u);
	EQUAL(dependencies(all[2]), 1u);
	EQUAL(dependencies(all[3]), 2u);
	NodeType type{};
	OK(cuGraphNodeGetType(all[2], &type));
	EQUAL(type, node_memset);
	auto executable = instantiate(graph);
	OK(cuGraphLaunch(executable, other));
	EQUAL(get<std::int64_t>(a, 1, other)[0], 3);
}

TEST("branches run in another order than they were captured in") {
	use(0);
	auto s = stream(), other = stream();
	auto p = on_device<std::int64_t>({0}, s);
	begin(s);
	follow(other, s);
	OK(cuMemsetD8Async(p, 1, 1, other));
	OK(cuMemsetD8Async(p, 2, 1, s)); // no event orders the two
	follow(s, other);
	OK(cuGraphLaunch(instantiate(end(s)), s));
	EQUAL(get<std::int64_t>(p, 1, s)[0], 1);
}

TEST("products and kernels are captured, and a kernel's parameter can change") {
	use(0);
	auto s = stream();
	auto a = on_device<double>({2}, s), b = on_device<double>({5}, s), c = on_device<double>({0}, s), d = on_device<double>({0}, s);
	blas::BlasHandle handle{};
	OK(cublasCreate_v2(&handle));
	OK(cublasSetStream_v2(handle, s));
	auto function = copies();
	auto views = element(d, c);
	void *parameters[] = {&views};
	begin(s);
	double one = 1, zero = 0;
	OK(cublasDgemm_v2(handle, blas::no_trans, blas::no_trans, 1, 1, 1, &one, pointer<double>(a), 1, pointer<double>(b), 1, &zero,
		pointer<double>(c), 1));
	OK(cuLaunchKernel(function, 1, 1, 1, WEIR_BLOCK, 1, 1, 0, s, parameters, nullptr));
	auto graph = end(s);
	auto executable = instantiate(graph);
	OK(cuGraphLaunch(executable, s));
	EQUAL(get<double>(d, 1, s)[0], 10);

	auto all = nodes(graph);
	KernelNodeParams launch{};
	EQUAL(cuGraphKernelNodeGetParams_v2(all[0], &launch), not_supported);
	OK(cuGraphKernelNodeGetParams_v2(all[1], &launch));
	CHECK(launch.function == function && launch.block[0] == WEIR_BLOCK);
	EQUAL(std::memcmp(launch.parameters[0], &views, sizeof views), 0);
	views = element(d, a);
	launch.parameters = parameters;
	OK(cuGraphExecKernelNodeSetParams_v2(executable, all[1], &launch));
	OK(cuGraphLaunch(executable, s));
	EQUAL(get<double>(d, 1, s)[0], 2);
	launch.grid[0] = 0;
	EQUAL(cuGraphExecKernelNodeSetParams_v2(executable, all[1], &launch), invalid_value);
	EQUAL(cuGraphExecKernelNodeSetParams_v2(executable, all[0], &launch), not_supported);
	OK(cublasDestroy_v2(handle));
}

TEST("an executable takes the parameters of a graph of the same form only") {
	use(0);
	auto s = stream();
	auto a = on_device<std::int64_t>({4}, s), b = allocate(8), c = allocate(8);
	auto captured = [&](DevicePtr to, bool fill, bool twice) {
		begin(s);
		if (fill)
			OK(cuMemsetD8Async(to, 9, 8, s));
		else
			copy(to, a, s);
		if (twice)
			copy(to, a, s);
		return end(s);
	};
	auto executable = instantiate(captured(b, false, false));
	UpdateInfo info{};
	put<std::int64_t>(b, {0}, s);
	OK(cuGraphExecUpdate_v2(executable, captured(c, false, false), &info));
	EQUAL(info.result, update_success);
	OK(cuGraphLaunch(executable, s));
	EQUAL(get<std::int64_t>(b, 1, s)[0], 0);
	EQUAL(get<std::int64_t>(c, 1, s)[0], 4);
	auto filling = captured(c, true, false);
	EQUAL(cuGraphExecUpdate_v2(executable, filling, &info), graph_exec_update_failure);
	EQUAL(info.result, update_node_type_changed);
	CHECK(info.node == nodes(filling)[0]);
	EQUAL(cuGraphExecUpdate_v2(executable, captured(c, false, true), &info), graph_exec_update_failure);
	EQUAL(info.result, update_topology_changed);
}

TEST("host functions and plain memory are used by each launch") {
	use(0);
	auto s = stream();
	auto p = allocate(8);
	std::atomic<int> calls = 0;
	std::int64_t from = 0, to = 0;
	begin(s);
	OK(cuMemcpyHtoDAsync_v2(p, &from, 8, s));
	OK(cuLaunchHostFunc(s, [](void *count) { ++*static_cast<std::atomic<int> *>(count); }, &calls));
	OK(cuMemcpyDtoHAsync_v2(&to, p, 8, s));
	auto executable = instantiate(end(s));
	for (int i = 1; i <= 3; i++) {
		from = i;
		OK(cuGraphLaunch(executable, s));
		OK(cuStreamSynchronize(s));
		EQUAL(to, i);
		EQUAL(calls.load(), i);
	}
}

TEST("a launch comes behind its stream's work and the launch before, on whatever stream") {
	use(0);
	auto s = stream(), other = stream();
	auto p = on_device<std::int64_t>({0}, s);
	begin(s);
	OK(cuMemsetD8Async(p, 1, 1, s));
	auto executable = instantiate(end(s));
	OK(cuStreamSynchronize(s));
	auto stall = weir_sim_stall(s);
	OK(cuGraphLaunch(executable, s));
	OK(cuGraphLaunch(executable, other));
	EQUAL(cuStreamQuery(other), not_ready);
	OK(cuMemsetD8Async(p, 2, 1, other));
	weir_sim_release(stall);
	OK(cuStreamSynchronize(other));
	EQUAL(get<std::int64_t>(p, 1, s)[0], 2);
}

TEST("a graph that is launched after its memory was freed ends the context") {
	use(0);
	auto s = stream();
	auto p = allocate(8);
	begin(s);
	OK(cuMemsetD8Async(p, 1, 8, s));
	auto executable = instantiate(end(s));
	OK(cuMemFree_v2(p));
	OK(cuGraphLaunch(executable, s));
	EQUAL(cuStreamSynchronize(s), illegal_address);
	CHECK(mentions(misuse_text(), "are not allocated memory"));
	EQUAL(cuGraphLaunch(executable, s), illegal_address);
	EQUAL(cuGraphExecDestroy(executable), illegal_address);
	EQUAL(weir_sim_live("graph-exec"), 0);
}

TEST("a captured copy between devices needs no access, as one that is not") {
	auto far = use(1);
	auto beyond = stream();
	auto q = take(pool(0, 1), beyond, 8);
	put<std::int64_t>(q, {5}, beyond);
	OK(cuStreamSynchronize(beyond));
	auto near = use(0);
	auto s = stream();
	auto p = allocate(8);
	begin(s);
	OK(cuMemcpyPeerAsync(p, near, q, far, 8, s));
	OK(cuGraphLaunch(instantiate(end(s)), s));
	EQUAL(get<std::int64_t>(p, 1, s)[0], 5);
	EQUAL(misuse_text(), "");
}

TEST("a capturing stream and its events can be neither asked nor waited for") {
	use(0);
	auto s = stream();
	for (auto call : {+[](StreamHandle s) { return cuStreamQuery(s); }, +[](StreamHandle s) { return cuStreamSynchronize(s); },
		     +[](StreamHandle) { return cuCtxSynchronize(); },
		     +[](StreamHandle s) {
			     DevicePtr p{};
			     return cuMemAllocFromPoolAsync(&p, 8, pool(), s);
		     }}) {
		begin(s);
		EQUAL(call(s), stream_capture_unsupported);
		spoiled(s);
	}
	for (auto call : {cuEventQuery, cuEventSynchronize}) {
		begin(s);
		auto e = record(s);
		EQUAL(call(e), captured_event);
		spoiled(s);
		EQUAL(call(e), captured_event); // until it is recorded anew
		OK(cuEventRecord(e, s));
		OK(cuEventSynchronize(e));
	}
}

TEST("a launch of a graph is not captured") {
	use(0);
	auto s = stream();
	begin(s);
	auto executable = instantiate(end(s));
	begin(s);
	EQUAL(cuGraphLaunch(executable, s), stream_capture_unsupported);
	GraphHandle graph{};
	EQUAL(cuStreamEndCapture(s, &graph), stream_capture_invalidated);
	OK(cuGraphLaunch(executable, s)); // without a node
	OK(cuStreamSynchronize(s));
}

TEST("a fork that is not joined, or is ended elsewhere, spoils the capture") {
	use(0);
	auto s = stream(), other = stream();
	auto p = allocate(8);
	GraphHandle graph{};
	begin(s);
	follow(other, s);
	OK(cuMemsetD8Async(p, 0, 8, other));
	EQUAL(cuStreamEndCapture(s, &graph), stream_capture_unjoined);
	CHECK(!graph);
	EQUAL(status(other), capture_none);
	begin(s);
	follow(other, s); // without work there is nothing to join
	OK(cuGraphDestroy(end(s)));
	begin(s);
	follow(other, s);
	EQUAL(cuStreamEndCapture(other, &graph), stream_capture_unmatched);
	spoiled(s);
	EQUAL(weir_sim_live("graph"), 0);
}

TEST("a capture is apart from other work and other captures") {
	use(0);
	auto s = stream(), other = stream();
	auto outside = record(other);
	begin(s);
	OK(cuStreamWaitEvent(s, event(), 0)); // never recorded
	EQUAL(cuStreamWaitEvent(s, outside, 0), stream_capture_isolation);
	spoiled(s);
	begin(s);
	begin(other);
	EQUAL(cuStreamWaitEvent(s, record(other), 0), stream_capture_merge);
	GraphHandle graph{};
	EQUAL(cuStreamEndCapture(s, &graph), stream_capture_invalidated);
	spoiled(other);
	begin(s);
	auto inside = record(s);
	OK(cuGraphDestroy(end(s)));
	EQUAL(cuStreamWaitEvent(other, inside, 0), captured_event);
}

TEST("a capture begins and ends once, not on the default stream") {
	use(0);
	auto s = stream();
	GraphHandle graph{};
	EQUAL(cuStreamEndCapture(s, &graph), illegal_state);
	EQUAL(cuStreamBeginCapture_v2(nullptr, capture_relaxed), stream_capture_unsupported);
	EQUAL(cuStreamBeginCapture_v2(s, static_cast<CaptureMode>(3)), invalid_value);
	begin(s);
	EQUAL(cuStreamBeginCapture_v2(s, capture_relaxed), illegal_state);
	OK(cuGraphDestroy(end(s)));
	EQUAL(cuGraphDestroy(graph), invalid_handle);
	CHECK(mentions(misuse_text(), "is no graph"));
}

TEST("a blocking stream that captures takes the default stream with it") {
	use(0);
	StreamHandle s{};
	OK(cuStreamCreateWithPriority(&s, stream_default, 0));
	CaptureStatus value{};
	begin(s);
	EQUAL(cuStreamIsCapturing(nullptr, &value), stream_capture_implicit);
	EQUAL(status(s), capture_active);
	EQUAL(cuStreamQuery(nullptr), stream_capture_implicit);
	spoiled(s);
	OK(cuStreamQuery(nullptr));
}

TEST("modes say who may not make unsafe calls meanwhile, and who ends the capture") {
	auto context = use(0);
	auto s = stream();
	auto elsewhere = [&](CaptureMode mode) {
		Result result{};
		std::thread([&] {
			OK(cuCtxSetCurrent(context));
			OK(cuThreadExchangeStreamCaptureMode(&mode));
			DevicePtr p{};
			result = cuMemAlloc_v2(&p, 8);
		}).join();
		return result;
	};
	GraphHandle graph{};
	DevicePtr p{};
	auto done = record(s);
	OK(cuStreamSynchronize(s));
	for (auto mode : {capture_global, capture_thread_local}) {
		begin(s, mode);
		EQUAL(cuMemAlloc_v2(&p, 8), stream_capture_unsupported);
		EQUAL(cuStreamEndCapture(s, &graph), stream_capture_invalidated);
		begin(s, mode);
		EQUAL(cuEventQuery(done), stream_capture_unsupported);
		EQUAL(cuStreamEndCapture(s, &graph), stream_capture_invalidated);
	}
	begin(s, capture_global);
	OK(elsewhere(capture_thread_local));
	EQUAL(status(s), capture_active);
	EQUAL(elsewhere(capture_global), stream_capture_unsupported);
	EQUAL(status(s), capture_invalidated);
	EQUAL(cuStreamEndCapture(s, &graph), stream_capture_invalidated);
	begin(s, capture_thread_local);
	OK(elsewhere(capture_global));
	std::thread([&] {
		OK(cuCtxSetCurrent(context));
		EQUAL(cuStreamEndCapture(s, &graph), stream_capture_wrong_thread);
	}).join();
	OK(cuGraphDestroy(end(s)));
	begin(s, capture_relaxed);
	OK(cuMemAlloc_v2(&p, 8));
	OK(cuEventQuery(done));
	OK(elsewhere(capture_global));
	std::thread([&] {
		OK(cuCtxSetCurrent(context));
		OK(cuGraphDestroy(end(s)));
	}).join();
}

TEST("a stream that is destroyed in a capture spoils it, and a context takes its graphs") {
	use(0);
	auto s = stream(), other = stream();
	begin(s);
	follow(other, s);
	OK(cuStreamDestroy_v2(other));
	spoiled(s);
	begin(s);
	OK(cuStreamDestroy_v2(s));
	EQUAL(weir_sim_live("graph"), 0);
	CHECK(mentions(misuse_text(), "is capturing"));
	s = stream();
	begin(s);
	instantiate(end(s));
	begin(s);
	EQUAL(weir_sim_live("graph"), 2);
	OK(cuDevicePrimaryCtxRelease_v2(0));
	EQUAL(weir_sim_live("graph"), 0);
	EQUAL(weir_sim_live("graph-exec"), 0);
}

TEST("a capture on a device that dies can't be ended, and goes with the device") {
	use(0);
	auto s = stream();
	begin(s);
	weir_sim_kill(0, launch_failed);
	GraphHandle graph{};
	EQUAL(cuStreamEndCapture(s, &graph), launch_failed);
	weir_sim_revive();
	EQUAL(weir_sim_live("graph"), 0);
}
