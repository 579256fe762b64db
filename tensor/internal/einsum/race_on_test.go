//go:build race

package einsum

const underRace = true
