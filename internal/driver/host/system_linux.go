package host

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

func systemMemory() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return unknownMemory
	}
	return int64(info.Totalram) * int64(info.Unit)
}

func processorName() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return unknownProcessor
}
