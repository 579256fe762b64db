//go:build !race

package async_test

const raceDetector = false
