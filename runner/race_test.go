//go:build race

package runner

// raceDetector reports whether these tests run under the race detector. It finds a race
// in a few rounds of the same steps; the many are for what depends on the moment.
const raceDetector = true
