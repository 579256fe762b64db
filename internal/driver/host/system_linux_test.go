package host

import (
	"math"
	"os"
	"path/filepath"
	"testing"
)

// tree makes files, by their paths, under a folder that stands for the system's
// root.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for path, text := range files {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestMemoryIsWhatTheControlGroupsOfEitherVersionAllow(t *testing.T) {
	const (
		meminfo   = "MemTotal:       9000 kB\nMemFree:  1 kB\nMemAvailable:   8000 kB\n"
		unlimited = "9223372036854771712\n" // how version 1 says that there is no limit
	)
	machine := totalMemory(t.TempDir())
	if machine < 64<<20 || machine == unknownMemory {
		t.Fatalf("the machine has %d bytes", machine)
	}
	for name, c := range map[string]struct {
		files            map[string]string
		total, available int64
	}{
		"no group":             {map[string]string{"proc/meminfo": meminfo}, machine, 8000 << 10},
		"nothing that says so": {nil, machine, unknownMemory},
		"version 2, at the top": {map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/\n",
			"sys/fs/cgroup/memory.max": "5000000\n", "sys/fs/cgroup/memory.current": "2000000\n",
		}, 5000000, 3000000},
		"version 2, the group above is the narrow one": {map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a/b\n",
			"sys/fs/cgroup/a/memory.max": "4000000\n", "sys/fs/cgroup/a/memory.current": "3999999\n",
			"sys/fs/cgroup/a/b/memory.max": "max\n", "sys/fs/cgroup/a/b/memory.current": "7\n",
		}, 4000000, 1},
		"version 1": {map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "12:cpu,cpuacct:/x\n9:memory:/a/b\n1:name=systemd:/c\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": unlimited, "sys/fs/cgroup/memory/memory.usage_in_bytes": "6000000\n",
			"sys/fs/cgroup/memory/a/b/memory.limit_in_bytes": "3000000\n", "sys/fs/cgroup/memory/a/b/memory.usage_in_bytes": "1000000\n",
			"sys/fs/cgroup/memory/x/memory.limit_in_bytes": "5\n", "sys/fs/cgroup/memory/c/memory.limit_in_bytes": "5\n",
		}, 3000000, 2000000},
		"version 1, the group above is the narrow one": {map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "9:hugetlb,memory:/a/b\n",
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes": "2000000\n", "sys/fs/cgroup/memory/a/memory.usage_in_bytes": "2500000\n",
			"sys/fs/cgroup/memory/a/b/memory.limit_in_bytes": "3000000\n", "sys/fs/cgroup/memory/a/b/memory.usage_in_bytes": "1\n",
		}, 2000000, 0},
		"version 1 in a container, whose path only the host sees": {map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "9:memory:/docker/0123\n0::/docker/0123\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "1000000\n", "sys/fs/cgroup/memory/memory.usage_in_bytes": "400000\n",
		}, 1000000, 600000},
		"version 1 without a limit": {map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "9:memory:/\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": unlimited, "sys/fs/cgroup/memory/memory.usage_in_bytes": "400000\n",
		}, machine, 8000 << 10},
		"a path that leads out": {map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "9:memory:/../../out\n0::/../../../../out\n",
			"out/memory.max": "1\n", "sys/fs/out/memory.limit_in_bytes": "1\n",
		}, machine, 8000 << 10},
		"files that are no such": {map[string]string{
			"proc/meminfo": "MemAvailable:\nMemAvailable: much kB\n", "proc/self/cgroup": "9:memory\n\nnothing\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "much\n", "sys/fs/cgroup/memory.max": "\n",
		}, machine, unknownMemory},
	} {
		t.Run(name, func(t *testing.T) {
			root := tree(t, c.files)
			if total, available := totalMemory(root), freeMemory(root); total != c.total || available != c.available {
				t.Errorf("%d bytes in all and %d available; expected %d and %d", total, available, c.total, c.available)
			}
		})
	}
	if total, available := systemMemory(), availableMemory(); total < 1 || total > machine || available < 1 || available == math.MaxInt64 {
		t.Errorf("of this system: %d bytes in all and %d available", total, available)
	}
}
