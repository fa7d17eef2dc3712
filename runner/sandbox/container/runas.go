package container

import (
	"fmt"
	"os"
	"syscall"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
)

// nobody is the uid and gid of a program that is to own no file of the host.
const nobody = 65534

// runAs is the user that a program runs as. mapped is set when the workspace is
// root's on disk and has to be shown to that user as its own.
type runAs struct {
	uid, gid uint32
	mapped   bool
}

// choose picks the user that the program runs as. It is never root, not even
// without capabilities: the kernel and every file on a host trust uid 0 by its
// number.
//
//	workspace of      runner is    the program is
//	somebody          he, or root  the owner: files keep their owner
//	root              root         65534; the mount shows the files as owned by 65534, files it writes are root's
//	root              somebody     no user that we may switch to: refused
//	somebody          another      refused
//	none              somebody     the user of the runner, which must be able to use its socket
//	none              root         65534
func choose(workspace string, access v1alpha1.WorkspaceAccess) (runAs, error) {
	us := runAs{uid: uint32(os.Geteuid()), gid: uint32(os.Getegid())}
	if workspace == "" {
		if us.uid == 0 {
			return runAs{uid: nobody, gid: nobody}, nil
		}
		return us, nil
	}
	info, err := os.Stat(workspace)
	if err != nil {
		return runAs{}, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return runAs{}, fmt.Errorf("workspace %s: its owner is not known", workspace)
	}
	owner := runAs{uid: st.Uid, gid: st.Gid}
	switch {
	case owner.uid == 0 && us.uid == 0:
		return runAs{uid: nobody, gid: nobody, mapped: true}, nil
	case us.uid == 0 && owner.gid == 0: // a group is a privilege, too
		return runAs{uid: owner.uid, gid: nobody}, nil
	case us.uid == 0 || us.uid == owner.uid:
		return owner, nil
	}
	return runAs{}, reason.New(reason.IsolationUnavailable, "workspace %s belongs to uid %d and agentctl runs as uid %d: a container cannot run as either", workspace, owner.uid, us.uid).
		WithHint("run agentctl as the owner of the workspace; access %s needs it", access)
}
