#include "fixture.h"

int main() {
	OK(cuInit(0));
	for (const auto &test : check::tests()) {
		weir_sim_reset();
		int before = check::failures;
		test.run();
		if (check::failures > before)
			std::fprintf(stderr, "FAILED: %s\n", test.name);
	}
	weir_sim_reset();
	for (auto kind : {"context", "stream", "event", "pool", "module", "function", "allocation", "host-allocation", "byte", "thread"})
		EQUAL(weir_sim_live(kind), 0);
	std::printf("%zu tests, %d failures\n", check::tests().size(), check::failures.load());
	return check::failures != 0;
}
