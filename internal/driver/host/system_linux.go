package host

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// systemMemory is the memory that the process may use: the machine's, or what
// its control group (version 2) allows.
func systemMemory() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return unknownMemory
	}
	total := int64(info.Totalram) * int64(info.Unit)
	for _, g := range controlGroups() {
		if limit, ok := groupNumber(g, "memory.max"); ok {
			total = min(total, limit)
		}
	}
	return total
}

// availableMemory is what can be had now without hurting others, as the kernel
// estimates it (MemAvailable).
func availableMemory() int64 {
	available := int64(unknownMemory)
	text, _ := os.ReadFile("/proc/meminfo")
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == "MemAvailable:" {
			if kib, err := strconv.ParseInt(f[1], 10, 64); err == nil {
				available = kib << 10
			}
		}
	}
	for _, g := range controlGroups() {
		limit, ok := groupNumber(g, "memory.max")
		used, known := groupNumber(g, "memory.current")
		if ok && known {
			available = min(available, max(limit-used, 0))
		}
	}
	return available
}

// controlGroups are the folders of the process's control group and those above.
func controlGroups() []string {
	const root = "/sys/fs/cgroup"
	folders := []string{root}
	text, _ := os.ReadFile("/proc/self/cgroup")
	for line := range strings.Lines(string(text)) {
		path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::/")
		if !ok {
			continue
		}
		for dir := filepath.Join(root, path); len(dir) > len(root); dir = filepath.Dir(dir) {
			folders = append(folders, dir)
		}
	}
	return folders
}

// groupNumber reads one number; "max" and what is not there are none.
func groupNumber(folder, file string) (int64, bool) {
	text, err := os.ReadFile(filepath.Join(folder, file))
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil
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
