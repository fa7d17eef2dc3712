package main

import (
	"cmp"
	"fmt"
	"io"
	"os"

	"agentctl.dev/agentctl/runner/sandbox/spec"
)

// etcFiles are the files of /etc that name the user and the network inside.
// With the host's network the host's own files are used.
func etcFiles(b *spec.Boot) map[string]string {
	home := cmp.Or(b.Profile.Home, "/tmp")
	user := fmt.Sprintf("agent:x:%d:%d:agent:%s:/bin/sh\n", b.UID, b.GID, home)
	group := fmt.Sprintf("agent:x:%d:\n", b.GID)
	if b.UID == 0 {
		user = fmt.Sprintf("root:x:0:0:root:%s:/bin/sh\n", home)
	} else {
		user += "root:x:0:0:root:/root:/bin/sh\n"
	}
	if b.GID == 0 {
		group = "root:x:0:\n"
	}
	files := map[string]string{
		"passwd": user + "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
		"group":  group + "nogroup:x:65534:\n",
		"hosts":  "127.0.0.1 localhost " + hostName + "\n::1 localhost\n", "hostname": hostName + "\n",
		"nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
		"resolv.conf":   "# No name is resolved here: the proxy, where there is one, does it outside.\n",
	}
	if b.Profile.Network == spec.NetworkHost {
		for _, name := range []string{"hosts", "resolv.conf", "nsswitch.conf"} {
			if text, err := readSmall("/etc/" + name); err == nil {
				files[name] = text
			}
		}
	}
	return files
}

// maxEtc bounds a file that is copied.
const maxEtc = 64 << 10

func readSmall(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, maxEtc))
	return string(b), err
}
