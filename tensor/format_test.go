package tensor

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

func TestFormatShowsShapeDeviceAndAlignedElements(t *testing.T) {
	ctx := start(t)
	for _, c := range []struct {
		name string
		a    *Array
		want string
	}{
		{"matrix", must(From(ctx, []float32{1, 2.5, -3, 40, 5, 6}, 2, 3)),
			"float32 2×3 on host:0\n[[  1 2.5  -3]\n [ 40   5   6]]"},
		{"scalar", must(Scalar(ctx, int64(-7))), "int64 () on host:0\n-7"},
		{"empty", must(Zeros(ctx, Float64, 0, 3)), "float64 0×3 on host:0\n[]"},
		{"specials", must(From(ctx, []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1)})),
			"float64 4 on host:0\n[ NaN +Inf -Inf   -0]"},
		{"complex", must(From(ctx, []complex64{1 - 2i, complex(0, float32(math.NaN()))})),
			"complex64 2 on host:0\n[  1-2i 0+NaNi]"},
		{"third axis", must(From(ctx, []int32{1, 2, 3, 4}, 2, 1, 2)),
			"int32 2×1×2 on host:0\n[[[1 2]]\n\n [[3 4]]]"},
		{"conjugate", must(From(ctx, []complex128{1 + 2i})).Conj(), "complex128 1 on host:0\n[1-2i]"},
	} {
		if got := must(Format(ctx, c.a)); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got, c.want)
		}
		if got := fmt.Sprint(c.a); got != c.want {
			t.Errorf("%s: fmt prints\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
}

func TestFormatAbbreviatesLargeArraysToTheirEnds(t *testing.T) {
	ctx := start(t)
	n := 200
	data := make([]int32, n*n)
	for i := range data {
		data[i] = int32(i)
	}
	got := must(Format(ctx, must(From(ctx, data, n, n))))
	want := `int32 200×200 on host:0
[[    0     1     2 ...   197   198   199]
 [  200   201   202 ...   397   398   399]
 [  400   401   402 ...   597   598   599]
 ...
 [39400 39401 39402 ... 39597 39598 39599]
 [39600 39601 39602 ... 39797 39798 39799]
 [39800 39801 39802 ... 39997 39998 39999]]`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestFormatFoldsLongLines(t *testing.T) {
	ctx := start(t)
	data := make([]float64, 100)
	got := must(Format(ctx, must(From(ctx, data))))
	for _, line := range strings.Split(got, "\n") {
		if len(line) > printWidth+1 {
			t.Errorf("a line of %d columns: %q", len(line), line)
		}
	}
	if n := strings.Count(got, "0") - strings.Count("float64 100 on host:0", "0"); n != 100 {
		t.Errorf("%d elements shown; want 100", n)
	}
}

func TestStringOfAFreedArraySaysSo(t *testing.T) {
	ctx := start(t)
	a := must(Zeros(ctx, Float32, 2))
	if err := a.Free(); err != nil {
		t.Fatal(err)
	}
	if s := a.String(); !strings.Contains(s, "float32 2") || !strings.Contains(s, "freed") {
		t.Errorf("got %q", s)
	}
}
