//go:build !race

package main

const leakRuns = 100
