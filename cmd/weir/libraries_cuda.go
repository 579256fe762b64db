//go:build cuda

package main

import "github.com/weirgo/weir/internal/driver/cuda"

// gpuLibraries says which files the GPUs' libraries are. It loads them.
func gpuLibraries() []libraryEntry {
	var all []libraryEntry
	for _, l := range cuda.Libraries() {
		all = append(all, libraryEntry{Name: l.Name, Path: l.Path, Reason: l.Reason})
	}
	return all
}
