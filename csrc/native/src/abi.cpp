#include "raftrkt/abi.h"

const rr_abi_tag *rr_abi(void) {
	static const rr_abi_tag tag = raftrkt::compiled_abi();
	return &tag;
}
