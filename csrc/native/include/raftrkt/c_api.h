/* All of the C interface. */
#ifndef RAFTRKT_C_API_H
#define RAFTRKT_C_API_H

#include "raftrkt/abi.h"
#include "raftrkt/array.h"
#include "raftrkt/core.h"
#include "raftrkt/deposit.h"
#include "raftrkt/job.h"
#include "raftrkt/memory.h"

#endif
