package native

import (
	"testing"
	"unsafe"

	"github.com/weirgo/weir/internal/sharedlib"
)

// TestEveryRecordHasTheLayoutOfTheInterface: a library that was compiled against the
// headers reads and writes these.
func TestEveryRecordHasTheLayoutOfTheInterface(t *testing.T) {
	var v View
	var tag ABITag
	var o outcome
	var d Record
	for _, f := range []struct {
		name     string
		got, the uintptr
	}{
		{"rr_view", unsafe.Sizeof(v), 152},
		{"rr_view.data", unsafe.Offsetof(v.data), 0}, {"rr_view.dtype", unsafe.Offsetof(v.dtype), 8},
		{"rr_view.memory", unsafe.Offsetof(v.memory), 12}, {"rr_view.device", unsafe.Offsetof(v.device), 16},
		{"rr_view.rank", unsafe.Offsetof(v.rank), 20}, {"rr_view.shape", unsafe.Offsetof(v.shape), 24},
		{"rr_view.strides", unsafe.Offsetof(v.strides), 88},
		{"rr_abi_tag", unsafe.Sizeof(tag), 56},
		{"rr_abi_tag.abi_version", unsafe.Offsetof(tag.Version), 0}, {"rr_abi_tag.raft", unsafe.Offsetof(tag.RAFT), 4},
		{"rr_abi_tag.rmm", unsafe.Offsetof(tag.RMM), 16}, {"rr_abi_tag.cccl", unsafe.Offsetof(tag.CCCL), 28},
		{"rr_abi_tag.cuda_runtime", unsafe.Offsetof(tag.CUDARuntime), 40},
		{"rr_abi_tag.resource_types", unsafe.Offsetof(tag.ResourceTypes), 44},
		{"rr_abi_tag.handle_size", unsafe.Offsetof(tag.HandleSize), 48},
		{"rr_job_outcome", unsafe.Sizeof(o), 4104},
		{"rr_job_outcome.status", unsafe.Offsetof(o.status), 0}, {"rr_job_outcome.kind", unsafe.Offsetof(o.kind), 4},
		{"rr_job_outcome.message", unsafe.Offsetof(o.message), 8},
		{"rr_deposit", unsafe.Sizeof(d), 1256},
		{"rr_deposit.handle", unsafe.Offsetof(d.handle), 0}, {"rr_deposit.device", unsafe.Offsetof(d.device), 8},
		{"rr_deposit.state", unsafe.Offsetof(d.state), 12}, {"rr_deposit.owner", unsafe.Offsetof(d.owner), 16},
		{"rr_deposit.release", unsafe.Offsetof(d.release), 24}, {"rr_deposit.count", unsafe.Offsetof(d.count), 32},
		{"rr_deposit.reserved", unsafe.Offsetof(d.reserved), 36}, {"rr_deposit.regions", unsafe.Offsetof(d.regions), 40},
	} {
		if f.got != f.the {
			t.Errorf("%s is %d; expected %d", f.name, f.got, f.the)
		}
	}
}

func TestABlockHasEachParameterAtItsNaturalPlace(t *testing.T) {
	fit := []Param{Handle, ViewIn, ViewIn, ViewInOut, Int32, Int32, Float64, Int32, Float64, Uint64, OutFloat64, OutInt32}
	for _, c := range []struct {
		name    string
		params  []Param
		offsets []uintptr
		bytes   uintptr
	}{
		{"kc_fit", fit, []uintptr{0, 8, 160, 312, 464, 468, 472, 480, 488, 496, 504, 512}, 520},
		{"kc_fit cut after init", fit[:5], []uintptr{0, 8, 160, 312, 464}, 472},
		{"kc_predict", []Param{Handle, ViewIn, ViewIn, ViewIn, Int32, ViewOut, OutFloat64}, []uintptr{0, 8, 160, 312, 464, 472, 624}, 632},
		{"kc_make_blobs", []Param{Handle, ViewOut, ViewOut, Int32, Float64, Int32, Float64, Float64, Uint64}, []uintptr{0, 8, 160, 312, 320, 328, 336, 344, 352}, 360},
		{"kc_cluster_members", []Param{Handle, ViewIn, ViewIn, Int32, IntoDeposit}, []uintptr{0, 8, 160, 312, 320}, 328},
		{"nothing", nil, nil, 0},
		{"small ones", []Param{Float32, Int64, OutInt32, OutFloat32, OutInt64, OutUint64}, []uintptr{0, 8, 16, 20, 24, 32}, 40},
	} {
		offsets, bytes := layout(c.params)
		if bytes != c.bytes || len(offsets) != len(c.offsets) {
			t.Errorf("%s takes %d bytes; expected %d", c.name, bytes, c.bytes)
			continue
		}
		for i := range offsets {
			if offsets[i] != c.offsets[i] {
				t.Errorf("%s: parameter %d is at %d; expected %d", c.name, i, offsets[i], c.offsets[i])
			}
		}
	}
}

func TestTextThatIsNoUTF8IsReplacedByteByByte(t *testing.T) {
	for from, want := range map[string]string{
		"": "", "plain": "plain", "Größe": "Größe", "bad \xff byte": "bad \ufffd byte", "\xe2\x82": "\ufffd\ufffd", "a\xc0\xafb": "a\ufffd\ufffdb",
	} {
		if got := sharedlib.Valid([]byte(from)); got != want {
			t.Errorf("%q becomes %q; expected %q", from, got, want)
		}
	}
}

// forget has the next use load the runtime library again.
func (f *flavour) forget() (restore func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	loaded := f.loaded
	f.loaded = nil
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.loaded = loaded
	}
}
