//go:build !linux

package cli

func dropProgram() {}
