/* The C headers in C: each alone and all together. HEADER names one. */
#include HEADER
#include HEADER

#include "raftrkt/c_api.h"

int main(void) {
	rr_abi_tag tag = {RR_ABI_VERSION, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
	rr_view view = {0, RR_DTYPE_FLOAT32, -1, -1, 0, {0}, {0}};
	rr_deposit deposit;
	rr_job_outcome outcome;
	char why[8];
	deposit.state = RR_DEPOSIT_OPEN;
	outcome.status = RR_OK;
	return rr_abi_compare(&tag, &tag, why, sizeof why) + view.rank + deposit.state + outcome.status;
}
