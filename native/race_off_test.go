//go:build !race

package native_test

const underRace = false
