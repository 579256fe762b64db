// Package ising has the two-dimensional Ising model on the L×L torus without a
// field, in two forms that share nothing: as a tensor network, contracted
// exactly, and as Kaufman's closed formula. Each checks the other.
//
// The coupling and Boltzmann's constant are 1, so that energies and
// temperatures are plain numbers:
//
//	Z = Σ exp(Σ σσ'/T),
//
// the outer sum over all spins σ = ±1, the inner over the 2·L² bonds between
// neighbours. On the torus a site of size 1 has itself for neighbour, once
// across and once down, and sites of size 2 have two bonds with each other.
//
// It does not simulate, does not truncate, and knows no other lattice.
//
// A Model is a value; its methods are safe for concurrent use. Contract frees
// what it makes, and ends with its context. Errors: weir.ErrArgument,
// weir.ErrOutOfMemory, and those of package tensor.
package ising
