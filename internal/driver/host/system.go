package host

import goruntime "runtime"

// What is used where the system does not say.
const (
	unknownMemory    = 1 << 40
	unknownProcessor = goruntime.GOARCH + " processor"
)
