package main

import "testing"

func TestSizesAreBytesWithDecimalOrBinaryUnits(t *testing.T) {
	for text, want := range map[string]int64{
		"1": 1, "1000": 1000, "1,000": 1000, "2GB": 2e9, "2 gb": 2e9, "512MiB": 512 << 20, "1.5KiB": 1536,
		"9223372036854775807": 1<<63 - 1,
	} {
		var f sizeFlag
		if err := f.Set(text); err != nil || int64(f) != want {
			t.Errorf("%q is %d, %v; expected %d", text, f, err, want)
		}
	}
	for _, text := range []string{"", "0", "0.4", "-1", "much", "1XB", "9223372036854775808", "10EiB", "1e3", "NaN"} {
		var f sizeFlag
		if err := f.Set(text); err == nil || f != 0 {
			t.Errorf("%q is %d, %v; expected an error", text, f, err)
		}
	}
}
