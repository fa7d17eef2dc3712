package runner

import (
	"os"
	"os/user"
)

// user is who begins a run. Runs of objects begin at a control plane, whose account
// says nothing about who asked for them.
func (o *RunOptions) user() string {
	if o.User != "" || len(o.Documents) > 0 {
		return o.User
	}
	return localUser()
}

// localUser is the name of the account that this process runs as.
func localUser() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return os.Getenv("USER")
}
