package sandbox

import (
	"bufio"
	"fmt"
	"os"
	"syscall"

	"agentctl.dev/agentctl/runner/sandbox/spec"
)

// user is the user that programs of a sandbox run as: the user of the runner
// or, where that is root, the owner of the workspace. A tool does not need uid
// 0, and without root's capabilities it could not write to the files of other
// users.
func user(p *spec.Profile) (uid, gid int) {
	uid, gid = os.Getuid(), os.Getgid()
	if uid != 0 || p.Workspace == "" || p.Access == "" || p.Access == spec.AccessNone {
		return uid, gid
	}
	fi, err := os.Stat(p.Workspace)
	if err != nil {
		return uid, gid // the mount will report it
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok || st.Uid == 0 || !covers(ids("/proc/self/uid_map", 0), int(st.Uid)) || !covers(ids("/proc/self/gid_map", 0), int(st.Gid)) {
		return uid, gid
	}
	return int(st.Uid), int(st.Gid)
}

func covers(maps []spec.Range, id int) bool {
	for _, m := range maps {
		if id >= m.First && id-m.First < m.Count {
			return true
		}
	}
	return false
}

// ids maps users onto themselves: only the own one, which is all that a user may
// map, and for root all there are. Otherwise root's helper, whose capabilities
// end with the map, could not enter the folders of others.
func ids(file string, own int) []spec.Range {
	if os.Getuid() == 0 {
		if all := identity(file); len(all) > 0 {
			return all
		}
	}
	return []spec.Range{{First: own, Count: 1}}
}

// maxMaps is the kernel's bound of lines in a map.
const maxMaps = 340

// identity reads which users this namespace has.
func identity(file string) (maps []spec.Range) {
	f, err := os.Open(file)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan() && len(maps) < maxMaps; {
		var inside, outside, size int
		if _, err := fmt.Sscan(lines.Text(), &inside, &outside, &size); err != nil {
			return nil
		}
		maps = append(maps, spec.Range{First: inside, Count: size})
	}
	return maps
}
