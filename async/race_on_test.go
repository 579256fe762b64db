//go:build race

package async_test

const raceDetector = true
