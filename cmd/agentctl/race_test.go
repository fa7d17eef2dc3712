//go:build race

package main

// leakRuns is how many runs TestNothingIsLeftOfAHundredRuns starts.
const leakRuns = 30
