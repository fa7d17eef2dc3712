package embedded

import "os"

func ownUser() int { return os.Geteuid() }
