//go:build !cuda

package main

// gpuLibraries says which files the GPUs' libraries are.
func gpuLibraries() []libraryEntry { return nil }
