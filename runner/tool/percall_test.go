package tool

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/plugins/host"
	"agentctl.dev/agentctl/runner/sandbox"
)

func TestCancelledProgramKeepsItsOutput(t *testing.T) {
	cases := map[string]struct {
		reason, script, output string
		code                   message.ErrorCode
		err                    error
	}{
		"ended by the signal": {"what it wrote until then is kept", "echo half; echo >&3; sleep 60", "half\n", message.CodeCancelled, context.Canceled},
		"fails at the signal": {"it says itself that it did not finish", "trap 'echo stopped; exit 3' TERM; echo half; echo >&3; sleep 60 & wait", "half\nstopped\n", message.CodeCancelled, context.Canceled},
		"had done its work":   {"a result that has come counts", "trap 'exit 0' TERM; echo all; echo >&3; sleep 60 & wait", "all\n", "", nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			launcher := sandbox.New(sandbox.Options{AllowUnsandboxed: true})
			defer launcher.Close() //nolint:errcheck // nothing is left to close
			dir := t.TempDir()
			fifo := filepath.Join(dir, "ready")
			if err := syscall.Mkfifo(fifo, 0o600); err != nil {
				t.Fatal(err)
			}
			command := v1alpha1.ToolSource{Exec: &v1alpha1.ExecSource{Command: []string{"/bin/sh", "-c", "exec 3>ready; " + c.script}}}
			d := of(Definition{Spec: v1alpha1.ToolSpec{Source: command}})
			s, err := NewPool(PoolOptions{Site: testSite(launcher)}).Serve(t.Context(), &d, Outside{})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var reader sync.WaitGroup
			defer reader.Wait()
			reader.Go(func() {
				defer cancel()
				f, err := os.Open(fifo) // waits for the script
				if err != nil {
					t.Error(err)
					return
				}
				defer f.Close()
				if _, err := f.Read(make([]byte, 1)); err != nil {
					t.Error(err)
				}
			})
			reply, err := s.Call(ctx, host.CallRequest{Workspace: dir, Args: []byte("{}"), Timeout: time.Minute}, func(string) {})
			if !errors.Is(err, c.err) || reply.Output != c.output || reply.Code != c.code || reply.Failed != (c.code != "") {
				t.Errorf("%s: got %+v, %v", c.reason, reply, err)
			}
		})
	}
}

func TestWhatToDoAboutAProgramThatDoesNotStart(t *testing.T) {
	for name, c := range map[string]struct{ program, want string }{
		"gone":      {filepath.Join(t.TempDir(), "gone"), "there is no such file"},
		"a folder":  {t.TempDir(), "chmod +x"},
		"a program": {"/proc/self/exe", "agentctl plugin test"},
	} {
		if hint := pluginHint(c.program); !strings.Contains(hint, c.want) {
			t.Errorf("%s: %s", name, hint)
		}
	}
}
