package record

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_X86_64

// callsHere are those of calls that exist on this architecture only.
var callsHere = []call{
	at(unix.SYS_OPEN, open, none, 0, 1, none),
	at(unix.SYS_CREAT, open, none, 0, none, none),
	at(unix.SYS_UNLINK, unlink, none, 0, none, none),
	at(unix.SYS_RMDIR, rmdir, none, 0, none, none),
	{unix.SYS_RENAME, rename, none, 0, none, 1, none, none},
	{unix.SYS_LINK, link, none, 0, none, 1, none, none},
	at(unix.SYS_SYMLINK, symlink, none, 1, none, none),
	at(unix.SYS_MKDIR, mkdir, none, 0, none, none),
	at(unix.SYS_MKNOD, mknod, none, 0, none, 1),
	at(unix.SYS_CHMOD, chmod, none, 0, none, none),
}
