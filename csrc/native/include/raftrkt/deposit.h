/* Deposits: outputs whose size only the call knows. The caller makes a record; the
 * call fills it with memory of its own and with what frees that memory. */
#ifndef RAFTRKT_DEPOSIT_H
#define RAFTRKT_DEPOSIT_H

#include "raftrkt/array.h"

#define RR_MAX_REGIONS 8

/* States. A record goes from open over filling to filled, and from any of them to
 * closed, by atomic exchanges of its state alone. */
#define RR_DEPOSIT_OPEN 0
#define RR_DEPOSIT_FILLING 1
#define RR_DEPOSIT_FILLED 2
#define RR_DEPOSIT_CLOSED 3

RR_BEGIN_C

/* rr_release_fn frees an owner. It runs once, on any thread, maybe beside other
 * calls of its library, with the deposit's device current and its handle alive. It
 * must neither throw nor call back into the program. */
typedef void (*rr_release_fn)(void *owner);

/* rr_deposit: whoever makes the record fills the first three fields and zeroes the
 * rest; raftrkt::deposit fills that. Whoever fills may write to the record until it
 * returns, even if the record was closed meanwhile. */
typedef struct rr_deposit {
	void *handle;                   /* of the resources that the record is on */
	int32_t device;                 /* theirs */
	int32_t state;                  /* RR_DEPOSIT_*; atomic */
	void *owner;                    /* of the regions' memory */
	rr_release_fn release;          /* frees it */
	int32_t count;                  /* of regions */
	int32_t reserved;               /* 0 */
	rr_view regions[RR_MAX_REGIONS];
} rr_deposit;

RR_SIZE(rr_deposit, 1256);
RR_LAYOUT(rr_deposit, handle, 0);
RR_LAYOUT(rr_deposit, device, 8);
RR_LAYOUT(rr_deposit, state, 12);
RR_LAYOUT(rr_deposit, owner, 16);
RR_LAYOUT(rr_deposit, release, 24);
RR_LAYOUT(rr_deposit, count, 32);
RR_LAYOUT(rr_deposit, reserved, 36);
RR_LAYOUT(rr_deposit, regions, 40);

/* rr_deposit_release closes a record of these resources. If it was filled, it calls
 * release(owner) with the device current; of any number of calls one does. Nothing
 * that is queued may use the regions any more, and nothing else may close a record
 * that is filled. If the device cannot be selected the record is as it was. */
RR_API int rr_deposit_release(rr_resources *resources, rr_deposit *deposit);

RR_END_C

#endif
