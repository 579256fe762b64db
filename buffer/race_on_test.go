//go:build race

package buffer_test

const underRace = true
