package plan

import (
	"os"
	"os/user"
)

// LocalUser is the name of the account that this process runs as.
func LocalUser() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return os.Getenv("USER")
}
