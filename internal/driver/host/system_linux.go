package host

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// systemMemory is the memory that the process may use: the machine's, or what
// its control group allows.
func systemMemory() int64 { return totalMemory("/") }

// availableMemory is what can be had now without hurting others, as the kernel
// estimates it (MemAvailable) and the control group allows.
func availableMemory() int64 { return freeMemory("/") }

// totalMemory is systemMemory, with the system's files looked for under root.
func totalMemory(root string) int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return unknownMemory
	}
	total := int64(info.Totalram) * int64(info.Unit)
	for _, g := range controlGroups(root) {
		if limit, ok := g.number(g.limit); ok {
			total = min(total, limit)
		}
	}
	return total
}

// freeMemory is availableMemory, with the system's files looked for under root.
func freeMemory(root string) int64 {
	available := int64(unknownMemory)
	text, _ := os.ReadFile(filepath.Join(root, "proc/meminfo"))
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == "MemAvailable:" {
			if kib, err := strconv.ParseInt(f[1], 10, 64); err == nil {
				available = kib << 10
			}
		}
	}
	for _, g := range controlGroups(root) {
		limit, ok := g.number(g.limit)
		used, known := g.number(g.used)
		if ok && known {
			available = min(available, max(limit-used, 0))
		}
	}
	return available
}

// controlGroup is the folder of one, and which of its files say how much memory
// it allows and has in use.
type controlGroup struct{ folder, limit, used string }

// controlGroups are the process's control groups that count memory and those
// above: of version 2, and of version 1 where its memory controller is mounted.
// In a container the process's path may be one that only the host sees; what
// holds for the container is then at the top.
func controlGroups(root string) []controlGroup {
	v2 := controlGroup{filepath.Join(root, "sys/fs/cgroup"), "memory.max", "memory.current"}
	v1 := controlGroup{filepath.Join(v2.folder, "memory"), "memory.limit_in_bytes", "memory.usage_in_bytes"}
	groups := []controlGroup{v2, v1}
	text, _ := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	for line := range strings.Lines(string(text)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3) // hierarchy, controllers, path
		if len(f) < 3 {
			continue
		}
		top := v1
		if f[0] == "0" && f[1] == "" {
			top = v2
		} else if !slices.Contains(strings.Split(f[1], ","), "memory") {
			continue
		}
		for path := filepath.Join("/", f[2]); path != "/"; path = filepath.Dir(path) {
			g := top
			g.folder = filepath.Join(top.folder, path)
			groups = append(groups, g)
		}
	}
	return groups
}

// number reads one number; "max" and what is not there are none.
func (g controlGroup) number(file string) (int64, bool) {
	text, err := os.ReadFile(filepath.Join(g.folder, file))
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
