package kernels

import _ "embed"

// Fatbin is what the driver loads: machine code for compute capability 8.0 and
// 9.0, and PTX for later ones.
//
//go:embed kernels.fatbin
var Fatbin []byte
