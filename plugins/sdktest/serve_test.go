package sdktest

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"agentctl.dev/agentctl/plugins/sdk/toolpb"
)

// program is the fixtures' program, started with nothing but these variables.
func program(t *testing.T, env ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) //nolint:usetesting // cancelled last
	t.Cleanup(cancel)
	c := exec.CommandContext(ctx, self(t, "fixtures").Command[0], "serve-fixtures") //nolint:gosec // this very program
	c.Env = env
	return c
}

const cookie = toolpb.CookieKey + "=" + toolpb.CookieValue

func TestAProgramThatCannotServeSaysWhy(t *testing.T) {
	for name, c := range map[string]struct {
		env  []string
		want string
	}{
		"started by hand":       {nil, `"agentctl plugin test" tries it`},
		"the cookie of another": {[]string{toolpb.CookieKey + "=1"}, `"agentctl plugin test" tries it`},
		"a caller with TLS":     {[]string{cookie, "PLUGIN_CLIENT_CERT=x"}, "the caller demands TLS"},
		"no folder":             {[]string{cookie, "PLUGIN_UNIX_SOCKET_DIR=/no/such/folder"}, "listen for the caller: "},
	} {
		t.Run(name, func(t *testing.T) {
			p := program(t, c.env...)
			var stdout, stderr bytes.Buffer
			p.Stdout, p.Stderr = &stdout, &stderr
			_ = p.Run()
			if code := p.ProcessState.ExitCode(); code != 1 || stdout.Len() > 0 || !strings.Contains(stderr.String(), c.want) {
				t.Errorf("exit code %d, stdout %q, stderr %q, want 1, nothing, and %q", code, &stdout, &stderr, c.want)
			}
		})
	}
}

func TestAProgramIgnoresInterruptsAndEndsWithItsCaller(t *testing.T) {
	dir, err := os.MkdirTemp("", "sdk") // a socket's path has to be short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	p := program(t, cookie, "PLUGIN_UNIX_SOCKET_DIR="+dir, "PLUGIN_PROTOCOL_VERSIONS=1")
	stdout, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	path, ok := strings.CutPrefix(line, "1|1|unix|")
	path, whole := strings.CutSuffix(path, "|grpc\n")
	if err != nil || !ok || !whole || filepath.Dir(path) != dir {
		t.Fatalf("handshake %q, %v: want a socket in %s", line, err, dir)
	}
	if err := p.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient("unix:"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	described, err := toolpb.NewToolClient(conn).Describe(t.Context(), &toolpb.DescribeRequest{}, grpc.WaitForReady(true))
	if err != nil || len(described.GetTools()) != len(Fixtures()) {
		t.Errorf("%d tools, %v, after an interrupt", len(described.GetTools()), err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err != nil {
		t.Errorf("the program ended with %v, want 0", err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("its socket is left: %v", err)
	}
}
