/* Captures and graphs; driver.h says how calls are made and what they answer. */
#ifndef WEIR_GRAPH_H
#define WEIR_GRAPH_H

#include <stddef.h>
#include <stdint.h>

/* Begins a capture of the streams, all of them from one place; event is any. When it
   fails nothing is captured. */
int weir_capture_begin(uintptr_t context, const uintptr_t *streams, size_t count, uintptr_t event);
/* Ends the capture of the same streams, when all of them have ended, and answers
   the graph. The streams are usual ones then, whatever the result is. */
int weir_capture_end(uintptr_t context, const uintptr_t *streams, size_t count, uintptr_t event, uintptr_t *graph);
/* Makes the graph one that can be launched. */
int weir_graph_instantiate(uintptr_t context, uintptr_t graph, uintptr_t *exec);
int weir_graph_destroy(uintptr_t context, uintptr_t graph);
int weir_graph_launch(uintptr_t context, uintptr_t exec, uintptr_t stream);
int weir_graph_exec_destroy(uintptr_t context, uintptr_t exec);

#endif
