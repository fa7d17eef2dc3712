//go:build race

package host_test

// raced: the race detector makes pools forget on purpose, so that memory says nothing.
const raced = true
