//go:build !linux

package container

import "os"

func openSource(string) (*os.File, error) { return nil, errNotLinux }

func sameSource(int, *os.File) error { return errNotLinux }
