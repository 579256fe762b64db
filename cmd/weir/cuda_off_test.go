//go:build !cuda

package main

const cudaBuild = false

// simulated says whether this process has the simulated driver.
func simulated() bool { return false }
