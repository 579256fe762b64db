package npyfile

import (
	"archive/zip"
	"cmp"
	"math"
	"slices"
)

// maxInflation is the most that deflate can expand: its shortest code for its
// longest match is 2 bits for 258 bytes.
const maxInflation = 258 * 8 / 2

// checkMembers refuses archives whose directory can't be true: an entry that
// lies outside the file, shares bytes with another (the trick of the archives
// that unpack without end), or promises more than its bytes can expand to.
func checkMembers(files []*zip.File, size int64, name string) error {
	type span struct {
		begin, end int64
		name       string
	}
	spans := make([]span, 0, len(files))
	for _, f := range files {
		where := member(name, f.Name)
		if f.Flags&1 != 0 {
			return refuse(where, "encrypted; expected plain data")
		}
		packed, whole := f.CompressedSize64, f.UncompressedSize64
		if packed > uint64(size) {
			return refuse(where, "claims %d bytes of an archive of %d; expected no more than there are", packed, size)
		}
		switch f.Method {
		case zip.Store:
			if packed != whole {
				return refuse(where, "stored in %d bytes for %d; expected the same number", packed, whole)
			}
		case zip.Deflate:
			if whole > math.MaxInt64 || whole/maxInflation > packed { // a product could overflow
				return refuse(where, "claims that %d bytes inflate to %d; expected at most %d times as many", packed, whole, maxInflation)
			}
		default:
			return refuse(where, "compressed by zip method %d; expected 0 (stored) or 8 (deflated)", f.Method)
		}
		begin, err := f.DataOffset()
		if err != nil {
			return failed(where, err, "cannot be found in the archive")
		}
		if begin > size-int64(packed) {
			return refuse(where, "its %d bytes begin at %d of an archive of %d; expected all of them inside it", packed, begin, size)
		}
		spans = append(spans, span{begin, begin + int64(packed), f.Name})
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.end, b.end)) })
	for i := 1; i < len(spans); i++ {
		if spans[i].begin < spans[i-1].end {
			return refuse(member(name, spans[i].name), "shares bytes of the archive with %s; expected a place of its own", quoteName(spans[i-1].name))
		}
	}
	return nil
}
