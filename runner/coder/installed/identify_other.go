//go:build !linux

package installed

import (
	"io/fs"
	"time"
)

func identify(fs.FileInfo) (string, time.Time, bool) { return "", time.Time{}, false }
