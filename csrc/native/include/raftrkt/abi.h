/* The ABI tag: what a library was compiled against. A downstream library's tag is
 * compared with libraftrkt's when it is loaded, since both pass C++ objects to each
 * other: a handle, by its address. */
#ifndef RAFTRKT_ABI_H
#define RAFTRKT_ABI_H

#include "raftrkt/core.h"

#include <stdio.h>
#include <string.h>

/* RR_ABI_VERSION counts the changes of what is frozen (csrc/native/frozen). */
#define RR_ABI_VERSION 1

typedef struct rr_abi_tag {
	int32_t abi_version;
	int32_t raft_major, raft_minor, raft_patch;
	int32_t rmm_major, rmm_minor, rmm_patch;
	int32_t cccl_major, cccl_minor, cccl_patch;
	int32_t cuda_runtime;   /* CUDART_VERSION, 1000 times the major and 10 times the
	                           minor number; 0 on the host flavour */
	int32_t resource_types; /* how many kinds of resources RAFT's handle knows */
	int64_t handle_size;    /* of the handle, in bytes */
} rr_abi_tag;

RR_SIZE(rr_abi_tag, 56);
RR_LAYOUT(rr_abi_tag, abi_version, 0);
RR_LAYOUT(rr_abi_tag, raft_major, 4);
RR_LAYOUT(rr_abi_tag, raft_minor, 8);
RR_LAYOUT(rr_abi_tag, raft_patch, 12);
RR_LAYOUT(rr_abi_tag, rmm_major, 16);
RR_LAYOUT(rr_abi_tag, rmm_minor, 20);
RR_LAYOUT(rr_abi_tag, rmm_patch, 24);
RR_LAYOUT(rr_abi_tag, cccl_major, 28);
RR_LAYOUT(rr_abi_tag, cccl_minor, 32);
RR_LAYOUT(rr_abi_tag, cccl_patch, 36);
RR_LAYOUT(rr_abi_tag, cuda_runtime, 40);
RR_LAYOUT(rr_abi_tag, resource_types, 44);
RR_LAYOUT(rr_abi_tag, handle_size, 48);

RR_BEGIN_C

/* rr_abi is libraftrkt's own tag. It lasts as long as the process. */
RR_API const rr_abi_tag *rr_abi(void);

/* The rest is compiled into whoever includes it: a downstream library links nothing
 * of libraftrkt. */

static inline int rr_abi_differs(char *why, size_t why_size, const char *what, const char *built, const char *loaded) {
	if (why && why_size)
		(void)snprintf(why, why_size,
		               "%s: built against %s, but libraftrkt has %s; build both against the same rapids package set", what,
		               built, loaded);
	return 1;
}

static inline int rr_abi_compare_numbers(const char *what, int64_t built, int64_t loaded, char *why, size_t why_size) {
	char b[24], l[24];
	if (built == loaded) return 0;
	(void)snprintf(b, sizeof b, "%lld", (long long)built);
	(void)snprintf(l, sizeof l, "%lld", (long long)loaded);
	return rr_abi_differs(why, why_size, what, b, l);
}

/* A version of zeros is of something that was not there. width is how many digits
 * the minor number and the patch have at least: RAPIDS writes 26.08.00. */
static inline void rr_abi_version_text(char *text, size_t size, const int32_t *version, int width) {
	if (version[0] == 0 && version[1] == 0 && version[2] == 0)
		(void)snprintf(text, size, "none");
	else
		(void)snprintf(text, size, "%d.%0*d.%0*d", (int)version[0], width, (int)version[1], width, (int)version[2]);
}

static inline int rr_abi_compare_versions(const char *what, int width, const int32_t *built, const int32_t *loaded,
                                          char *why, size_t why_size) {
	char b[40], l[40];
	if (built[0] == loaded[0] && built[1] == loaded[1] && built[2] == loaded[2]) return 0;
	rr_abi_version_text(b, sizeof b, built, width);
	rr_abi_version_text(l, sizeof l, loaded, width);
	return rr_abi_differs(why, why_size, what, b, l);
}

/* rr_abi_compare answers 0 if the tags agree, and otherwise 1 with the first
 * difference in why, cut to why_size bytes with the NUL. */
static inline int rr_abi_compare(const rr_abi_tag *built, const rr_abi_tag *loaded, char *why, size_t why_size) {
	int32_t b[12], l[12], cuda_b[3], cuda_l[3]; /* the fields that are int32_t, and CUDA's split */
	if (why && why_size) why[0] = '\0';
	if (!built || !loaded) {
		if (why && why_size)
			(void)snprintf(why, why_size, "ABI tag: built against %s, but libraftrkt has %s", built ? "present" : "none",
			               loaded ? "present" : "none");
		return 1;
	}
	memcpy(b, built, sizeof b);
	memcpy(l, loaded, sizeof l);
	cuda_b[0] = b[10] / 1000, cuda_b[1] = b[10] % 1000 / 10, cuda_b[2] = b[10] % 10;
	cuda_l[0] = l[10] / 1000, cuda_l[1] = l[10] % 1000 / 10, cuda_l[2] = l[10] % 10;
	return rr_abi_compare_numbers("ABI version", b[0], l[0], why, why_size) ||
	       rr_abi_compare_versions("RAFT", 2, b + 1, l + 1, why, why_size) ||
	       rr_abi_compare_versions("RMM", 2, b + 4, l + 4, why, why_size) ||
	       rr_abi_compare_versions("CCCL", 1, b + 7, l + 7, why, why_size) ||
	       rr_abi_compare_versions("CUDA runtime", 1, cuda_b, cuda_l, why, why_size) ||
	       rr_abi_compare_numbers("resource types", b[11], l[11], why, why_size) ||
	       rr_abi_compare_numbers("raft::handle_t size", built->handle_size, loaded->handle_size, why, why_size);
}

RR_END_C

#if defined(__cplusplus) && __cplusplus >= 202002L
#include "raftrkt/compiled_abi.hpp"
#endif

#endif
