//go:build !linux

package embedded

func ownUser() int { return unknownUser }
