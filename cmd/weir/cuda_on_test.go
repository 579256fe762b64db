//go:build cuda

package main

import "github.com/weirgo/weir/internal/driver/cuda/cudatest"

const cudaBuild = true

// simulated says whether this process has the simulated driver.
func simulated() bool { return cudatest.Simulated() }
