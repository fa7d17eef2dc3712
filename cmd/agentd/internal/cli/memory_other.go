//go:build !linux

package cli

func dropPages() {}
