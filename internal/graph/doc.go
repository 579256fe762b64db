// Package graph puts submissions that need some of each other on several streams
// and has the device capture them as one graph.
//
// Nodes are the submissions of operations. Lanes are the streams and
// library handles of one graph's life: a stream has a handle of its own, so that no
// two products of a graph that may run at once share a workspace, and nobody else
// uses that while the graph runs.
//
// It knows nothing of arrays and memory (package tensor does), and waits for nothing
// but the destruction of what it made. Concurrency: everything belongs to one
// goroutine at a time. Errors are the driver's.
package graph
