package embedded

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// ownSockets are the inodes of the sockets of this process.
func ownSockets(t *testing.T) []string {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("needs /proc: ", err)
	}
	inodes := []string{}
	for _, fd := range fds {
		to, err := os.Readlink(filepath.Join("/proc/self/fd", fd.Name()))
		if inode, ok := strings.CutPrefix(to, "socket:["); err == nil && ok {
			inodes = append(inodes, strings.TrimSuffix(inode, "]"))
		}
	}
	return inodes
}

// lines returns the fields of each line of a table below /proc/self/net.
func lines(t *testing.T, table string) [][]string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/net/" + table)
	if err != nil {
		t.Skip("needs /proc: ", err)
	}
	rows := [][]string{}
	for line := range strings.Lines(string(text)) {
		rows = append(rows, strings.Fields(line))
	}
	return rows[1:]
}

// listeners are the TCP sockets on which this process listens.
func listeners(t *testing.T) []*net.TCPAddr {
	t.Helper()
	own := ownSockets(t)
	found := []*net.TCPAddr{}
	for _, table := range []string{"tcp", "tcp6"} {
		for _, row := range lines(t, table) {
			const listening = "0A"
			if len(row) < 10 || row[3] != listening || !slices.Contains(own, row[9]) {
				continue
			}
			ip, port, _ := strings.Cut(row[1], ":")
			a := &net.TCPAddr{IP: make(net.IP, len(ip)/2)}
			words, err := hex.DecodeString(ip)
			if err != nil {
				t.Fatal(err)
			}
			for i := 0; i < len(words); i += 4 { // words in the order of the machine
				binary.BigEndian.PutUint32(a.IP[i:], binary.NativeEndian.Uint32(words[i:]))
			}
			if _, err := fmt.Sscanf(port, "%X", &a.Port); err != nil {
				t.Fatal(err)
			}
			found = append(found, a)
		}
	}
	if len(found) == 0 {
		t.Error("found no listener at all")
	}
	return found
}

// TestDatabaseListensInItsFolderOnly: an abstract socket belongs to no folder,
// so everybody could connect.
func TestDatabaseListensInItsFolderOnly(t *testing.T) {
	s := sharedServer(t)
	own, paths := ownSockets(t), []string{}
	for _, row := range lines(t, "unix") {
		const accepting = "00010000"
		if len(row) > 7 && row[3] == accepting && slices.Contains(own, row[6]) {
			paths = append(paths, row[7])
		}
	}
	if want := []string{s.folder.path(clientSocket)}; !slices.Equal(paths, want) {
		t.Errorf("listens on %q, want %q", paths, want)
	}
	for path, want := range map[string]os.FileMode{s.folder.dir: 0o700 | os.ModeDir, s.folder.path(clientSocket): 0o600 | os.ModeSocket} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != want {
			t.Errorf("%s has mode %v, want %v", path, info.Mode(), want)
		}
	}
}

// connectEnv makes the test binary connect to a socket and say what came of it.
const connectEnv = "EMBEDDED_TEST_CONNECT"

// connect is the test binary as another user: exit code 0 means that every
// connection is refused.
func connect(path string) int {
	conn, err := new(net.Dialer).DialContext(context.Background(), "unix", path)
	if err == nil {
		conn.Close()
		fmt.Println("connected")
		return 1
	}
	_, read := os.ReadDir(filepath.Dir(path))
	if !errors.Is(err, syscall.EACCES) || !errors.Is(read, syscall.EACCES) {
		fmt.Println("other errors than those of a door that is shut:", err, read)
		return 1
	}
	return 0
}

func TestAnotherUserCannotConnectToTheDatabase(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to become another user")
	}
	s := sharedServer(t)
	// The folder of the test binary may not be readable either, so the other
	// user gets a copy.
	dir := stateDir(t)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	self, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "connect.test")
	if err := os.WriteFile(program, self, 0o755); err != nil {
		t.Fatal(err)
	}
	// The parent of control is made as open as users may have it.
	if err := os.Chmod(shared.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	const nobody = 65534
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Dir = dir
	cmd.Env = []string{connectEnv + "=" + s.folder.path(clientSocket), "GOMAXPROCS=1"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("as another user: %v\n%s", err, out)
	}
}
