// Package npyfile reads and writes NumPy's .npy and .npz files: one dense
// array, or a zip archive of named ones, as bytes in memory.
//
// It does not know tensors: elements are little-endian bytes in the file's own
// memory order, and the caller lays a view over them. It does not unpickle,
// map files into memory, or convert between element types; what Weir has no
// element type for is refused by name.
//
// NumPy has no bfloat16. Package ml_dtypes saves it as "<V2", two raw bytes;
// so V2 is read as bfloat16 and bfloat16 is written as "<V2". After np.load,
// a.view(ml_dtypes.bfloat16) gives the type back.
//
// # npyio
//
// github.com/sbinet/npyio gives the magic string and the mapping from type
// codes to Go types, and is the second implementation that the tests compare
// with. Its reader panics on damaged headers, allocates what a header asks
// for, needs NumPy's own spelling of the header, and knows neither version
// 3.0, float16 nor bfloat16; its writer has no Fortran order and no float16.
// So headers, data and archives are handled here.
//
// # Ownership and concurrency
//
// The caller owns every byte slice, and closes a File and an Archive. Reading
// from one of them is safe for concurrent use; writing the same path twice at
// once leaves one of the two files, whole. Files are replaced, never changed in
// place: see WriteFile.
//
// # Cancellation and errors
//
// Long reads and writes look at their context between chunks of 1 MiB. Every
// error is a *weir.Error with Op "npy" that names the file, what was found and
// what was expected. It matches weir.ErrArgument and, where the system refused,
// also its cause (fs.ErrNotExist, syscall.ENOSPC …); after a cancellation it
// matches the context's error instead.
package npyfile
