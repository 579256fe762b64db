// Graphs and what is instantiated of them.
//
// A launch submits a graph's operations to the stream, one behind the other. Of
// those that may come next the one that was captured last comes next: an order
// that the graph allows, and about the opposite of that of the capture, so that a
// missing dependency shows.
#pragma once

#include "kernel.h"

namespace simcuda {

struct Node {
	Operation operation;
	std::vector<std::size_t> after; // the nodes that it depends on, by their places
};

// Graph is operations that depend on each other, each on some of those before it.
struct Graph {
	std::shared_ptr<Context> context;
	std::vector<Node> nodes{};
	std::vector<GraphNodeHandle> handles{}; // of the nodes
};
using GraphPtr = std::shared_ptr<Graph>;

// NodePlace is what a node's handle stands for.
struct NodePlace {
	GraphPtr graph;
	std::size_t place;
	const Node &node() const { return graph->nodes[place]; }
};

// Executable is a graph as it was when it was instantiated.
struct Executable {
	std::shared_ptr<Context> context;
	std::vector<Node> nodes;
	std::vector<GraphNodeHandle> handles; // of the nodes of the graph
	std::vector<std::size_t> order;       // in which they are submitted
	RecordPtr last{};                     // the end of the last launch
};

// add_node adds an operation to the graph, and answers its place.
std::size_t add_node(const GraphPtr &graph, Operation operation, std::vector<std::size_t> after);

// remove_graph forgets the graph and its nodes; it answers whether there was one.
bool remove_graph(GraphHandle handle);

} // namespace simcuda
