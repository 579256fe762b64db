#include "entry.h"

#include <algorithm>
#include <queue>

namespace simcuda {

std::size_t add_node(const GraphPtr &graph, Operation operation, std::vector<std::size_t> after) {
	auto place = graph->nodes.size();
	graph->nodes.push_back({std::move(operation), std::move(after)});
	graph->handles.push_back(simulator().nodes.add(std::make_shared<NodePlace>(NodePlace{graph, place})));
	return place;
}

bool remove_graph(GraphHandle handle) {
	auto graph = simulator().graphs.remove(handle);
	for (auto node : graph ? graph->handles : std::vector<GraphNodeHandle>{})
		simulator().nodes.remove(node);
	return graph != nullptr;
}

namespace {

GraphPtr find_graph(GraphHandle handle) {
	auto graph = simulator().graphs.find(handle);
	if (!graph)
		misuse(format("%p is no graph", static_cast<void *>(handle)));
	require(graph != nullptr, invalid_handle);
	return graph;
}

std::shared_ptr<NodePlace> find_node(GraphNodeHandle handle) {
	auto node = simulator().nodes.find(handle);
	if (!node)
		misuse(format("%p is no node of a graph", static_cast<void *>(handle)));
	require(node != nullptr, invalid_handle);
	return node;
}

std::shared_ptr<Executable> find_executable(GraphExecHandle handle) {
	auto executable = simulator().executables.find(handle);
	if (!executable)
		misuse(format("%p is no executable graph", static_cast<void *>(handle)));
	require(executable != nullptr, invalid_handle);
	executable->context->device.require_alive();
	return executable;
}

std::vector<std::size_t> order_of(const std::vector<Node> &nodes) {
	std::vector<std::size_t> open, order;
	std::vector<std::vector<std::size_t>> behind(nodes.size());
	std::priority_queue<std::size_t> next;
	for (std::size_t i = 0; i < nodes.size(); i++) {
		open.push_back(nodes[i].after.size());
		for (auto before : nodes[i].after)
			behind[before].push_back(i);
		if (open[i] == 0)
			next.push(i);
	}
	while (!next.empty()) {
		order.push_back(next.top());
		next.pop();
		for (auto i : behind[order.back()])
			if (--open[i] == 0)
				next.push(i);
	}
	return order;
}

// difference says why the executable cannot become the graph.
UpdateInfo difference(const Executable &executable, const Graph &graph) {
	if (executable.nodes.size() != graph.nodes.size())
		return {update_topology_changed, nullptr, nullptr};
	for (std::size_t i = 0; i < graph.nodes.size(); i++) {
		const auto &was = executable.nodes[i], &is = graph.nodes[i];
		if (was.after != is.after)
			return {update_topology_changed, graph.handles[i], nullptr};
		if (was.operation.type != is.operation.type)
			return {update_node_type_changed, graph.handles[i], nullptr};
	}
	return {update_success, nullptr, nullptr};
}

// list answers handles as the interface does: how many there are, or as many as
// there is room for.
void list(const std::vector<GraphNodeHandle> &all, GraphNodeHandle *place, std::size_t *count) {
	require(count != nullptr, invalid_value);
	for (std::size_t i = 0; place && i < *count; i++)
		place[i] = i < all.size() ? all[i] : nullptr;
	*count = place ? std::min(*count, all.size()) : all.size();
}

} // namespace

} // namespace simcuda

using namespace simcuda;

SIM_API Result cuGraphDestroy(GraphHandle handle) {
	return api("cuGraphDestroy", [&](Lock &) {
		auto graph = find_graph(handle);
		remove_graph(handle);
		graph->context->device.require_alive();
	});
}

SIM_API Result cuGraphGetNodes(GraphHandle handle, GraphNodeHandle *nodes, std::size_t *count) {
	return api("cuGraphGetNodes", [&](Lock &) { list(find_graph(handle)->handles, nodes, count); });
}

SIM_API Result cuGraphNodeGetType(GraphNodeHandle handle, NodeType *type) {
	return api("cuGraphNodeGetType", [&](Lock &) { answer(type, find_node(handle)->node().operation.type); });
}

SIM_API Result cuGraphNodeGetDependencies(GraphNodeHandle handle, GraphNodeHandle *nodes, std::size_t *count) {
	return api("cuGraphNodeGetDependencies", [&](Lock &) {
		auto found = find_node(handle);
		std::vector<GraphNodeHandle> all;
		for (auto place : found->node().after)
			all.push_back(found->graph->handles[place]);
		list(all, nodes, count);
	});
}

SIM_API Result cuGraphKernelNodeGetParams_v2(GraphNodeHandle handle, KernelNodeParams *parameters) {
	return api("cuGraphKernelNodeGetParams_v2", [&](Lock &) {
		auto found = find_node(handle);
		const auto &launch = found->node().operation.launch;
		require(parameters && found->node().operation.type == node_kernel, invalid_value);
		require(launch != nullptr, not_supported); // of a library
		*parameters = {launch->function, {launch->grid[0], launch->grid[1], launch->grid[2]},
			{launch->block[0], launch->block[1], launch->block[2]}, launch->shared_bytes, const_cast<void **>(&launch->first),
			nullptr, nullptr, found->graph->context->handle};
	});
}

SIM_API Result cuGraphInstantiateWithFlags(GraphExecHandle *handle, GraphHandle graph_handle, unsigned long long flags) {
	return api("cuGraphInstantiateWithFlags", [&](Lock &) {
		auto graph = find_graph(graph_handle);
		require(handle && !(flags & ~(instantiate_auto_free | instantiate_node_priority)), invalid_value);
		graph->context->device.require_alive();
		*handle = simulator().executables.add(std::make_shared<Executable>(
			Executable{graph->context, graph->nodes, graph->handles, order_of(graph->nodes)}));
	});
}

SIM_API Result cuGraphExecDestroy(GraphExecHandle handle) {
	return api("cuGraphExecDestroy", [&](Lock &) {
		auto executable = simulator().executables.remove(handle);
		if (!executable)
			misuse(format("cuGraphExecDestroy: %p is no executable graph", static_cast<void *>(handle)));
		require(executable != nullptr, invalid_handle);
		executable->context->device.require_alive();
	});
}

SIM_API Result cuGraphExecKernelNodeSetParams_v2(GraphExecHandle handle, GraphNodeHandle node, const KernelNodeParams *parameters) {
	return api("cuGraphExecKernelNodeSetParams_v2", [&](Lock &) {
		auto executable = find_executable(handle);
		find_node(node);
		auto at = std::find(executable->handles.begin(), executable->handles.end(), node);
		require(parameters && at != executable->handles.end(), invalid_value);
		auto &operation = executable->nodes[static_cast<std::size_t>(at - executable->handles.begin())].operation;
		require(operation.type == node_kernel, invalid_value);
		require(operation.launch != nullptr, not_supported); // of a library
		operation = launch_operation(executable->context, *parameters);
	});
}

SIM_API Result cuGraphExecUpdate_v2(GraphExecHandle handle, GraphHandle graph_handle, UpdateInfo *info) {
	return api("cuGraphExecUpdate_v2", [&](Lock &) {
		auto executable = find_executable(handle);
		auto graph = find_graph(graph_handle);
		require(info && graph->context == executable->context, invalid_value);
		*info = difference(*executable, *graph);
		require(info->result == update_success, graph_exec_update_failure);
		executable->nodes = graph->nodes;
	});
}

SIM_API Result cuGraphUpload(GraphExecHandle handle, StreamHandle stream) {
	return api("cuGraphUpload", [&](Lock &) {
		find_executable(handle);
		find_stream(stream)->require_not_capturing();
	});
}

SIM_API Result cuGraphLaunch(GraphExecHandle handle, StreamHandle stream_handle) {
	return api("cuGraphLaunch", [&](Lock &) {
		auto executable = find_executable(handle);
		auto stream = find_stream(stream_handle);
		if (stream->context != executable->context)
			misuse(format("cuGraphLaunch: a graph of device %d is launched on a stream of device %d",
				executable->context->device.ordinal, stream->device.ordinal));
		require(stream->context == executable->context, invalid_value);
		stream->require_not_capturing();
		if (auto last = executable->last; last && last->stream != stream->number)
			stream->wait("cuGraphLaunch", last);
		for (auto place : executable->order)
			stream->submit(executable->nodes[place].operation, BadMemory::fault);
		executable->last = stream->record("cuGraphLaunch");
	});
}
