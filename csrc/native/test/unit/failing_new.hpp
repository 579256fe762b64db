// operator new that fails when told to.
#pragma once

// no_memory makes the calling thread's allocations fail in its scope, after the first
// few succeeded.
class no_memory {
public:
	explicit no_memory(int after = 0);
	~no_memory();
	no_memory(const no_memory &) = delete;
	no_memory &operator=(const no_memory &) = delete;
};
