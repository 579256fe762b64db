package bench

import (
	"cmp"
	"fmt"
	"io"
	"os"
	goruntime "runtime"
	"strings"
	"time"

	"github.com/weirgo/weir/internal/hostblas"
	"github.com/weirgo/weir/runtime"
)

// Header is what a figure must be read with.
type Header struct {
	Date      time.Time `json:"date"`
	Device    string    `json:"device"`
	Libraries string    `json:"libraries,omitempty"` // of a GPU: the files, whose names have the versions
	Processor string    `json:"processor"`
	Load      string    `json:"load,omitempty"` // what else the machine does: the load average, "" where the system has none
	BLAS      string    `json:"blas"`
	Go        string    `json:"go"`
	Weir      string    `json:"weir"`
	Peers     string    `json:"peers"`              // which were found, and looked for
	Settings  string    `json:"settings,omitempty"` // environment variables that change results; "" when none is set
	Command   string    `json:"command"`
}

// influential are the environment variables that change results.
var influential = []string{"WEIR_BLAS", "WEIR_BLAS_DIR", "WEIR_DEBUG", "OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS",
	"GOMAXPROCS", "GOGC", "GOMEMLIMIT", "GODEBUG", "WEIR_CUDA_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "CUDA_LAUNCH_BLOCKING",
	"CUDA_MODULE_LOADING", "NVIDIA_TF32_OVERRIDE", "CUBLAS_WORKSPACE_CONFIG"}

// NewHeader describes a run on d, now; version is that of Weir, peers may be nil,
// and command is the command line.
func NewHeader(d runtime.Device, version string, peers *Peers, command []string) Header {
	l := hostblas.Default()
	h := Header{
		Date:      time.Now(),
		Device:    device(d),
		Processor: processor(),
		Load:      load(),
		BLAS:      fmt.Sprintf("%s, %d threads", strings.TrimSpace(l.Name()+" "+strings.TrimPrefix(l.Version(), l.Name()+" ")), l.Threads()),
		Go:        fmt.Sprintf("%s %s/%s", goruntime.Version(), goruntime.GOOS, goruntime.GOARCH),
		Weir:      version,
		Peers:     "not asked for",
		Command:   strings.Join(command, " "),
	}
	if !d.IsHost() {
		h.Libraries = gpuLibraries()
	}
	if peers != nil {
		h.Peers = peers.String()
	}
	var set []string
	for _, name := range influential {
		if value, ok := os.LookupEnv(name); ok {
			set = append(set, name+"="+value)
		}
	}
	h.Settings = strings.Join(set, " ")
	return h
}

// device is d's name and, of a GPU, its maker's.
func device(d runtime.Device) string {
	if d.IsHost() {
		return d.Name()
	}
	return fmt.Sprintf("%s, %s", d.Name(), d.Capabilities().Name)
}

// processor is the host's, whatever the device is.
func processor() string {
	name := "unknown"
	if host, err := runtime.Get("host"); err == nil {
		name = host.Capabilities().Name
	}
	return fmt.Sprintf("%s, %d of %d cores used", name, goruntime.GOMAXPROCS(0), goruntime.NumCPU())
}

// load is Linux's load averages over 1, 5 and 15 minutes.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	fields := strings.Fields(string(text))
	return strings.Join(fields[:min(3, len(fields))], " ")
}

// fields are names and texts for people, in order.
func (h Header) fields() [][2]string {
	all := [][2]string{{"date", h.Date.Format(time.RFC3339)}, {"device", h.Device}}
	if h.Libraries != "" {
		all = append(all, [2]string{"libraries", h.Libraries})
	}
	return append(all, [][2]string{
		{"processor", h.Processor}, {"load", cmp.Or(h.Load, "unknown")}, {"blas", h.BLAS}, {"go", h.Go}, {"weir", h.Weir}, {"peers", h.Peers},
		{"settings", cmp.Or(h.Settings, "none of "+strings.Join(influential, ", "))}, {"command", h.Command},
	}...)
}

// Write writes one line for each field.
func (h Header) Write(w io.Writer) error {
	for _, f := range h.fields() {
		if _, err := fmt.Fprintf(w, "%-10s %s\n", f[0]+":", f[1]); err != nil {
			return err
		}
	}
	return nil
}
