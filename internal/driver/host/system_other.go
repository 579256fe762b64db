//go:build !linux

package host

func systemMemory() int64 { return unknownMemory }

func availableMemory() int64 { return unknownMemory }

func processorName() string { return unknownProcessor }
