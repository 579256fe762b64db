package einsum

import "fmt"

// count writes a number with three digits or four and a decimal prefix.
func count(n float64) string {
	const prefixes = "kMGTPEZY"
	switch {
	case n < 999.5:
		return fmt.Sprintf("%.4g", n)
	case n >= huge:
		return "more than 1e300"
	case n >= 999.5e24:
		return fmt.Sprintf("%.3g", n)
	}
	k := -1
	for ; n >= 999.5; k++ {
		n /= 1000
	}
	return fmt.Sprintf("%.3g %c", n, prefixes[k])
}

// size writes a number of bytes with a binary prefix.
func size(n int64) string {
	const prefixes = "KMGTPE"
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	f, k := float64(n)/1024, 0
	for ; f >= 1024 && k < len(prefixes)-1; k++ {
		f /= 1024
	}
	return fmt.Sprintf("%.4g %ciB", f, prefixes[k])
}

// bytesExactly writes a number of bytes so that it can be given back.
func bytesExactly(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("%d bytes (%s)", n, size(n))
}
