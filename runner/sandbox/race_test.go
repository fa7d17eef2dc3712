//go:build race

package sandbox

// raceDetector reports whether these tests run under the race detector, whose
// own memory does not fit below a small memory limit.
const raceDetector = true
