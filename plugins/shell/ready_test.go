package shell

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentctl.dev/agentctl/plugins/sdk"
)

// say runs a command on one bash, whose next shell is ready when say returns.
func say(t *testing.T, b *bash, ws string, args map[string]any) *sdk.Result {
	t.Helper()
	res := runTool(t.Context(), t, b.tool(), &sdk.Call{Workspace: ws}, args)
	b.preparing.Wait()
	return res
}

func TestTheNextShellWaits(t *testing.T) {
	b, ws := newBash(t, grace), t.TempDir()
	say(t, b, ws, map[string]any{"command": "true"})
	if b.next == nil {
		t.Fatal("no shell waits after the first call")
	}
	waits := b.next.cmd.Process.Pid
	res := say(t, b, ws, map[string]any{"command": "echo $$"})
	if got := strings.TrimSpace(res.Text); got != fmt.Sprint(waits) {
		t.Errorf("shell %s ran the command, want the one that waited, %d", got, waits)
	}
	if b.next == nil || b.next.cmd.Process.Pid == waits {
		t.Error("a shell ran twice, or none waits")
	}
}

// A shell that was handed its command must not differ from one that was
// started with it.
func TestAHandedCommandIsLikeAnyOther(t *testing.T) {
	for _, command := range []string{
		`echo "$0 $# [$*]"; pwd; ls /proc/self/fd | wc -l`,
		`printf '%s\n' 'a "b" $c' "d\e" ; cat`,
		"cat <<'EOF'\n$x `y`\nEOF\necho after",
		"exit 7", "false", "nonesuch", "if then", "kill -9 $$", "exec sh -c 'exit 3'", "set -e; false; echo no",
		"trap 'echo bye' EXIT; echo hi", "f() { return 4; }; f", "a=1; export a; env | grep ^a=", "umask; ulimit -n",
		"  # nothing but a remark", "\n\necho two lines down", "echo a;echo b&&echo c||echo d", "read x; echo $? [$x]",
		`[[ abc == a* ]] && echo match; echo {1..3}; echo $((2**10)); declare -A m=([k]=v); echo ${m[k]}`,
	} {
		b, ws := &bash{grace: grace}, t.TempDir()
		cold := say(t, b, ws, map[string]any{"command": command})
		if b.next == nil {
			t.Fatal("no shell waits")
		}
		warm := say(t, b, ws, map[string]any{"command": command})
		b.quit()
		clean := func(r *sdk.Result) string {
			code := "none"
			if r.ExitCode != nil {
				code = fmt.Sprint(*r.ExitCode)
			}
			// Only the name of the place in a message differs.
			text := strings.ReplaceAll(r.Text, "bash: eval: line", "bash: -c: line")
			return fmt.Sprintf("%s signal %q error %v\n%s", code, r.Signal, r.IsError, text)
		}
		if got, want := clean(warm), clean(cold); got != want {
			t.Errorf("%q\nhanded over: %s\nstarted with it: %s", command, got, want)
		}
	}
}

func TestACommandRunsOnce(t *testing.T) {
	b, ws := newBash(t, grace), t.TempDir()
	for range 200 {
		say(t, b, ws, map[string]any{"command": "echo x >> count"})
	}
	got, err := os.ReadFile(filepath.Join(ws, "count"))
	if err != nil || len(got) != 2*200 {
		t.Errorf("%d lines for 200 calls, %v", len(got)/2, err)
	}
}

func TestAWaitingShellIsNotUsedBlindly(t *testing.T) {
	b, ws := newBash(t, grace), filepath.Join(t.TempDir(), "ws")
	if err := os.Mkdir(ws, 0o755); err != nil {
		t.Fatal(err)
	}
	say(t, b, ws, map[string]any{"command": "true"})
	t.Run("its folder was replaced", func(t *testing.T) {
		if err := os.Rename(ws, ws+".old"); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(ws, 0o755); err != nil {
			t.Fatal(err)
		}
		say(t, b, ws, map[string]any{"command": "echo x > here"})
		if _, err := os.Stat(filepath.Join(ws, "here")); err != nil {
			t.Errorf("it ran elsewhere: %v", err)
		}
	})
	t.Run("it was killed", func(t *testing.T) {
		if err := b.next.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		<-b.next.exited
		if res := say(t, b, ws, map[string]any{"command": "echo alive"}); res.Text != "alive\n" {
			t.Errorf("got %q", res.Text)
		}
	})
	t.Run("the command is long", func(t *testing.T) {
		waits := b.next.cmd.Process.Pid
		res := say(t, b, ws, map[string]any{"command": "echo $$ #" + strings.Repeat("x", maxHanded)})
		if strings.TrimSpace(res.Text) == fmt.Sprint(waits) {
			t.Error("a long command was handed over")
		}
	})
	t.Run("another folder is meant", func(t *testing.T) {
		if err := os.Mkdir(filepath.Join(ws, "sub"), 0o755); err != nil {
			t.Fatal(err)
		}
		if res := say(t, b, ws, map[string]any{"command": "basename $PWD", "workdir": "sub"}); res.Text != "sub\n" {
			t.Errorf("it ran in %q", res.Text)
		}
	})
}

func TestAWaitingShellEndsWithItsProgram(t *testing.T) {
	b, ws := newBash(t, grace), t.TempDir()
	say(t, b, ws, map[string]any{"command": "true"})
	r := b.next
	b.next = nil
	if !b.listens(r) {
		t.Fatal("it does not wait for a command")
	}
	_ = r.words.Close() // as the end of this process would
	<-r.exited
	b.forest.forget(r.tree)
	_ = r.pipe.Close()
	if code := r.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("it ended with %d, want 0: nothing was asked of it", code)
	}
}

func TestNobodyElseCanPutWordsIn(t *testing.T) {
	b, ws := newBash(t, grace), t.TempDir()
	say(t, b, ws, map[string]any{"command": "true"})
	f, err := os.OpenFile(fmt.Sprintf("/proc/%d/fd/3", b.next.cmd.Process.Pid), os.O_WRONLY, 0)
	if err == nil {
		_ = f.Close()
		t.Error("the way to the waiting shell can be opened by its name")
	}
}
