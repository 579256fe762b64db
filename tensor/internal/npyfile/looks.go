package npyfile

import "bytes"

// looksLike names the kind of file that begins with these bytes, as the end of
// a sentence; nothing when it can't tell.
func looksLike(head []byte) string {
	for _, k := range []struct{ prefix, hint string }{
		{"PK\x03\x04", "; it looks like a zip archive: is it a .npz file?"},
		{"PK\x05\x06", "; it looks like an empty zip archive: is it a .npz file?"},
		{"\x89HDF\r\n\x1a\n", "; it looks like HDF5"},
		{"\x1f\x8b", "; it looks like gzip: decompress it first"},
		{"\x80\x02", pickle}, {"\x80\x03", pickle}, {"\x80\x04", pickle}, {"\x80\x05", pickle},
		{"\x93NUMPY", "; it looks like a .npy file"},
	} {
		if bytes.HasPrefix(head, []byte(k.prefix)) {
			return k.hint
		}
	}
	for _, c := range head {
		if (c < ' ' || c > '~') && c != '\t' && c != '\n' && c != '\r' {
			return ""
		}
	}
	return "; it looks like text or CSV: load it with np.loadtxt and save it with np.save"
}

const pickle = "; it looks like a Python pickle: save the array with np.save"
