//go:build race

package host_test

// raced: the race detector drops items of pools on purpose, so that measured memory means
// nothing.
const raced = true
