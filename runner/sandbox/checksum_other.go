//go:build !linux

package sandbox

import "os"

func identify(*os.File) (fileID, bool) { return fileID{}, false }
