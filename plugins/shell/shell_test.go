package shell

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/plugins/sdk"
)

// runIn runs the tool as a call would.
func runIn(ctx context.Context, t *testing.T, call *sdk.Call, args map[string]any) *sdk.Result {
	t.Helper()
	b := &bash{grace: grace}
	defer b.quit()
	return runTool(ctx, t, b.tool(), call, args)
}

// newBash makes a bash that leaves no waiting shell behind: in a process that
// serves, there is one bash, and its shell ends with it.
func newBash(t testing.TB, d time.Duration) *bash {
	t.Helper()
	b := &bash{grace: d}
	t.Cleanup(b.quit)
	return b
}

func (b *bash) quit() {
	b.preparing.Wait()
	if b.next != nil {
		b.next.end()
		b.next.discard(b.forest)
		b.next = nil
	}
}

func runTool(ctx context.Context, t *testing.T, tool sdk.Tool, call *sdk.Call, args map[string]any) *sdk.Result {
	t.Helper()
	b, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	res, err := tool.Run(ctx, call, b)
	if err != nil {
		t.Fatalf("bash %v: %v", args, err)
	}
	return res
}

func sh(t *testing.T, command string) *sdk.Result {
	t.Helper()
	return runIn(t.Context(), t, &sdk.Call{Workspace: t.TempDir()}, map[string]any{"command": command})
}

func exit(res *sdk.Result) string {
	switch {
	case res.ExitCode != nil:
		return strconv.Itoa(*res.ExitCode)
	case res.Signal != "":
		return res.Signal
	}
	return "none"
}

func TestBashTellsHowTheCommandEnded(t *testing.T) {
	for name, tc := range map[string]struct{ reason, command, text, exit string }{
		"ok":         {"success is exit 0", "echo hi", "hi\n", "0"},
		"failure":    {"an exit code is a result, no error", "echo no >&2; exit 3", "no\n", "3"},
		"not found":  {"the shell's own message is output", "nonesuch-cmd 2>/dev/null", "", "127"},
		"signal":     {"a shell that is killed has no exit code", "kill -9 $$", "", "killed"},
		"both":       {"stdout and stderr come in the order written", "echo 1; echo 2 >&2; echo 3; echo 4 >&2", "1\n2\n3\n4\n", "0"},
		"stdin":      {"stdin is empty, so nothing waits for it", "cat; echo end", "end\n", "0"},
		"dash":       {"a command may begin with a dash", "-x 2>/dev/null; echo $?", "127\n", "0"},
		"bash":       {"it is bash, not sh", "[[ a == a ]] && echo ${BASH_VERSION:+yes}", "yes\n", "0"},
		"no newline": {"output is passed on as it is", "printf a", "a", "0"},
		"pipeline":   {"the end of a pipe does not kill with noise", "yes | head -2", "y\ny\n", "0"},
		"no tty":     {"there is no terminal to ask on", "(: </dev/tty) 2>/dev/null || echo none", "none\n", "0"},
	} {
		t.Run(name, func(t *testing.T) {
			res := sh(t, tc.command)
			if diff := cmp.Diff([]string{tc.text, tc.exit}, []string{res.Text, exit(res)}); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if res.IsError || !res.Writes {
				t.Errorf("got IsError %v Writes %v", res.IsError, res.Writes)
			}
		})
	}
}

func TestBashRefusesWhatItCannotRun(t *testing.T) {
	ws := t.TempDir()
	out := t.TempDir()
	if err := os.Symlink(out, filepath.Join(ws, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(ws, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		reason, workspace string
		args              map[string]any
		want              string
	}{
		"empty":         {"nothing to run", ws, map[string]any{"command": " \n"}, "command is empty"},
		"nul":           {"argv cannot hold it", ws, map[string]any{"command": "echo \x00"}, "command holds a NUL character"},
		"timeout":       {"time does not run backwards", ws, map[string]any{"command": "true", "timeout": -1}, "timeout is a number of milliseconds above 0"},
		"outside":       {"the workspace is the bound", ws, map[string]any{"command": "true", "workdir": "/"}, "workdir / is outside the workspace " + ws + " (external_directory): name a folder within it"},
		"dots":          {"also by dots", ws, map[string]any{"command": "true", "workdir": "../"}, "workdir ../ is outside the workspace " + ws + " (external_directory): name a folder within it"},
		"link":          {"also by a link", ws, map[string]any{"command": "true", "workdir": "link"}, "workdir link is outside the workspace " + ws + " (external_directory): name a folder within it"},
		"missing":       {"a typo is named", ws, map[string]any{"command": "true", "workdir": "nope"}, "workdir nope does not exist"},
		"file":          {"a file is no folder", ws, map[string]any{"command": "true", "workdir": "file"}, "workdir file is not a folder"},
		"no workspace":  {"nowhere to run", "", map[string]any{"command": "true"}, `this call has no workspace (got ""): commands run in a workspace`},
		"unknown field": {"unknown fields are errors", ws, map[string]any{"command": "true", "cwd": "."}, "cwd"},
	} {
		t.Run(name, func(t *testing.T) {
			res := runIn(t.Context(), t, &sdk.Call{Workspace: tc.workspace}, tc.args)
			if !res.IsError || !strings.Contains(res.Text, tc.want) {
				t.Errorf("%s: got IsError %v, text %q, want %q", tc.reason, res.IsError, res.Text, tc.want)
			}
		})
	}
}

func TestBashRunsInTheWorkdir(t *testing.T) {
	ws := t.TempDir()
	if err := os.Mkdir(filepath.Join(ws, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"sub", filepath.Join(ws, "sub"), "./x/../sub"} {
		res := runIn(t.Context(), t, &sdk.Call{Workspace: ws}, map[string]any{"command": "pwd", "workdir": dir})
		if res.IsError && dir == "./x/../sub" {
			continue // x does not exist; the lexical path is what counts
		}
		if want := filepath.Join(ws, "sub") + "\n"; res.Text != want {
			t.Errorf("workdir %q: got %q, want %q", dir, res.Text, want)
		}
	}
}

func TestBashEnvironmentIsThePrograms(t *testing.T) {
	t.Setenv("DECLARED", "yes")
	want := os.Environ()
	res := sh(t, "cat /proc/self/environ | tr '\\0' '\\n'")
	have := map[string]bool{}
	for kv := range strings.SplitSeq(res.Text, "\n") {
		have[kv] = true
	}
	for _, kv := range want {
		name, _, _ := strings.Cut(kv, "=")
		if name == "PWD" || name == "SHLVL" || name == "_" || name == "OLDPWD" || strings.Contains(kv, "\n") {
			continue // the shell's own
		}
		if !have[kv] {
			t.Errorf("%s is missing", name)
		}
		delete(have, kv)
	}
	for kv := range have {
		name, _, _ := strings.Cut(kv, "=")
		if name != "" && name != "PWD" && name != "SHELL" && name != "SHLVL" && name != "_" && name != "OLDPWD" && os.Getenv(name) == "" {
			t.Errorf("%s was added", kv)
		}
	}
}

// TestBashIsToldWhatItWouldLookUp is about the start of a shell: without them it
// asks the name service for the user's shell, and the kernel where it is.
func TestBashIsToldWhatItWouldLookUp(t *testing.T) {
	for name, given := range map[string]string{"nothing given": "", "a shell of the program's": "/bin/other"} {
		t.Run(name, func(t *testing.T) {
			ws, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			t.Setenv("SHELL", given)
			if given == "" {
				_ = os.Unsetenv("SHELL") // t.Setenv puts back what was there
			}
			b := newBash(t, grace)
			for _, way := range []string{"a shell of its own", "one that waited"} {
				b.preparing.Wait()
				res := runTool(t.Context(), t, b.tool(), &sdk.Call{Workspace: ws}, map[string]any{"command": "printenv PWD SHELL"})
				shell := given
				if shell == "" {
					shell = b.shell
				}
				if want := ws + "\n" + shell + "\n"; res.Text != want {
					t.Errorf("%s: the environment holds %q, want %q", way, res.Text, want)
				}
			}
		})
	}
}

func TestTimeoutKeepsTheOutput(t *testing.T) {
	res := runIn(t.Context(), t, &sdk.Call{Workspace: t.TempDir()}, map[string]any{"command": "echo before; sleep 60; echo after", "timeout": 4000})
	if res.Code != sdk.CodeTimeout || !res.IsError {
		t.Errorf("got code %q", res.Code)
	}
	want := "before\n[timed out after 4000 ms; all processes of the command were ended]"
	if res.Text != want {
		t.Errorf("got %q, want %q", res.Text, want)
	}
	if res.Signal != "terminated" {
		t.Errorf("got signal %q", res.Signal)
	}
}

func TestTheCallsDeadlineComesFirst(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	res := runIn(ctx, t, &sdk.Call{Workspace: t.TempDir()}, map[string]any{"command": "echo before; sleep 60"})
	if ctx.Err() != nil {
		t.Error("the result came after the deadline")
	}
	if res.Code != sdk.CodeTimeout || !strings.HasPrefix(res.Text, "before\n[timed out after ") || !strings.Contains(res.Text, "limit of the call") {
		t.Errorf("got code %q, text %q", res.Code, res.Text)
	}
}

func TestTheCallHasTheTimeOfItsToolUnlessItSays(t *testing.T) {
	long, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	short, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for name, test := range map[string]struct {
		ctx        context.Context
		timeout    int
		over, upTo time.Duration
		whole      bool
	}{
		"nothing":           {t.Context(), 0, defaultTimeout - 1, defaultTimeout, true},
		"the tool":          {long, 0, 9 * time.Minute, 10 * time.Minute, false},
		"the call":          {long, 1000, time.Second - 1, time.Second, true},
		"a shorter tool":    {short, 0, 40 * time.Second, time.Minute, false},
		"more than allowed": {short, 600000, 40 * time.Second, time.Minute, false},
	} {
		if limit, whole := patience(test.ctx, test.timeout); limit <= test.over || limit > test.upTo || whole != test.whole {
			t.Errorf("%s: got %s, %t", name, limit, whole)
		}
	}
}

func TestTermIsFollowedByKill(t *testing.T) {
	tool := shortGrace(t, 100*time.Millisecond)
	res := runTool(t.Context(), t, tool, &sdk.Call{Workspace: t.TempDir()}, map[string]any{"command": "trap '' TERM; echo on; while :; do sleep 0.05; done", "timeout": 4000})
	if res.Code != sdk.CodeTimeout || res.Signal != "killed" || !strings.HasPrefix(res.Text, "on\n") {
		t.Errorf("got code %q signal %q text %q", res.Code, res.Signal, res.Text)
	}
}

// shortGrace is bash with less patience than the real one has.
func shortGrace(t *testing.T, d time.Duration) sdk.Tool {
	t.Helper()
	b := newBash(t, d)
	return sdk.New("bash", "", b.run)
}

func TestCancelEndsTheTree(t *testing.T) {
	ws := t.TempDir()
	fifo := filepath.Join(ws, "ready")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, _ = os.ReadFile(fifo) // returns when the command has got so far
		cancel()
	}()
	res := runIn(ctx, t, &sdk.Call{Workspace: ws}, map[string]any{"command": "echo x > ready; sleep 60"})
	if res.Code != sdk.CodeCancelled {
		t.Errorf("got code %q, text %q", res.Code, res.Text)
	}
}

// survivors returns the pids in a file that are alive.
func survivors(t *testing.T, name string) []string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatalf("the command wrote no pids: %v", err)
	}
	var alive []string
	for f := range strings.FieldsSeq(string(b)) {
		pid, err := strconv.Atoi(f)
		if err != nil {
			t.Fatal(err)
		}
		if _, state := parentage(pid); state != 0 && state != 'Z' {
			alive = append(alive, f)
		}
	}
	return alive
}

func TestNoProcessOutlivesTheCall(t *testing.T) {
	for name, tc := range map[string]struct{ reason, command string }{
		"background":    {"a plain background job", "sleep 600 & echo $! >> pids"},
		"nohup":         {"deaf to HUP", "nohup sleep 600 >/dev/null 2>&1 & echo $! >> pids"},
		"setsid":        {"in a session of its own", "setsid sh -c 'echo $$ >> pids; exec sleep 600' & while [ ! -s pids ]; do sleep 0.01; done"},
		"double fork":   {"an orphan", "(setsid sh -c '(sh -c \"echo \\$\\$ >> pids; exec sleep 600\" &) ' &) ; while [ ! -s pids ]; do sleep 0.01; done"},
		"env -i":        {"without an environment", "(setsid env -i /bin/sh -c 'echo $$ >> pids; exec /bin/sleep 600' &); while [ ! -s pids ]; do sleep 0.01; done"},
		"closed fds":    {"holding none of our pipes", "(setsid sh -c 'echo $$ >> pids; exec sleep 600 </dev/null >/dev/null 2>&1' &); while [ ! -s pids ]; do sleep 0.01; done"},
		"stopped":       {"one that sleeps does not hear TERM", "sh -c 'echo $$ >> pids; kill -STOP $$' & while [ ! -s pids ]; do sleep 0.01; done"},
		"no mark":       {"one that threw its mark away", "(setsid bash -c 'ulimit -SHR 77; echo $$ >> pids; exec sleep 600' &); while [ ! -s pids ]; do sleep 0.01; done"},
		"mark set back": {"one that set its limit back", "(setsid bash -c 'ulimit -SR $(ulimit -HR) 2>/dev/null; echo $$ >> pids; exec sleep 600' &); while [ ! -s pids ]; do sleep 0.01; done"},
		"own reaper":    {"a tree beneath a daemon", "touch pids; setsid bash -c 'for i in 1 2 3; do (setsid sleep 600 & echo $! >> pids); done; echo $$ >> pids; wait; sleep 600' & while [ $(wc -l < pids) -lt 4 ]; do sleep 0.01; done"},
	} {
		t.Run(name, func(t *testing.T) {
			ws := t.TempDir()
			res := runIn(t.Context(), t, &sdk.Call{Workspace: ws}, map[string]any{"command": tc.command + "; echo done", "timeout": 60000})
			if alive := survivors(t, filepath.Join(ws, "pids")); len(alive) > 0 {
				t.Errorf("%s: %v survived", tc.reason, alive)
			}
			if !strings.HasPrefix(res.Text, "done\n[") || !strings.Contains(res.Text, "ended with it]") {
				t.Errorf("got %q", res.Text)
			}
		})
	}
}

func TestADaemonThatIgnoresTermDiesToo(t *testing.T) {
	ws := t.TempDir()
	res := runTool(t.Context(), t, shortGrace(t, 50*time.Millisecond), &sdk.Call{Workspace: ws},
		map[string]any{"command": `(setsid bash -c 'trap "" TERM HUP INT; echo $$ >> pids; while :; do sleep 0.02; done' &); while [ ! -s pids ]; do sleep 0.01; done`})
	if alive := survivors(t, filepath.Join(ws, "pids")); len(alive) > 0 {
		t.Errorf("%v survived: %q", alive, res.Text)
	}
}

func TestCallsDoNotEndEachOthersProcesses(t *testing.T) {
	tool := newBash(t, grace).tool()
	ws := t.TempDir()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			// Each waits for its own daemon's answer while others end around it.
			cmd := fmt.Sprintf(`(setsid sh -c 'sleep 0.3; echo alive > d%d' &); sleep 0.0%d; while [ ! -s d%d ]; do sleep 0.01; done; cat d%d`, i, i, i, i)
			res := runTool(t.Context(), t, tool, &sdk.Call{Workspace: ws}, map[string]any{"command": cmd, "timeout": 60000})
			if !strings.HasPrefix(res.Text, "alive\n") || res.IsError {
				t.Errorf("call %d: %q", i, res.Text)
			}
		})
		wg.Go(func() {
			for range 5 {
				res := runTool(t.Context(), t, tool, &sdk.Call{Workspace: ws}, map[string]any{"command": fmt.Sprintf("sleep 600 & echo $! >> p%d", i)})
				if !strings.Contains(res.Text, "was ended with it") {
					t.Errorf("call %d: %q", i, res.Text)
				}
			}
		})
	}
	wg.Wait()
	for i := range 8 {
		if alive := survivors(t, filepath.Join(ws, fmt.Sprintf("p%d", i))); len(alive) > 0 {
			t.Errorf("%v survived", alive)
		}
	}
}

// A process that throws its mark away ends with its call, also while others run.
func TestNoMarkHelpsAgainstTheEndOfACallBesideAnother(t *testing.T) {
	tool, ws := newBash(t, grace).tool(), t.TempDir()
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, end := context.WithCancel(t.Context())
	defer end()
	wg.Go(func() {
		runTool(ctx, t, tool, &sdk.Call{Workspace: ws}, map[string]any{"command": "touch runs; sleep 600"})
	})
	for _, throw := range []string{"ulimit -SHR 77", "ulimit -SR $(ulimit -HR)"} {
		res := runTool(t.Context(), t, tool, &sdk.Call{Workspace: ws}, map[string]any{"timeout": 60000, "command": "while [ ! -e runs ]; do sleep 0.01; done; rm -f pids\n" +
			"(setsid bash -c '" + throw + "; (setsid sleep 600 & echo $! >> pids); echo $$ >> pids; exec sleep 600' &); while [ ! -e pids ] || [ $(wc -l < pids) -lt 2 ]; do sleep 0.01; done"})
		if alive := survivors(t, filepath.Join(ws, "pids")); len(alive) > 0 {
			t.Errorf("%s: %v survived: %q", throw, alive, res.Text)
		}
		if ctx.Err() != nil {
			t.Error("the other call was ended")
		}
	}
}

func TestAForkingCrowdIsEnded(t *testing.T) {
	b, ws := newBash(t, 50*time.Millisecond), t.TempDir()
	// Every member is replaced by another one all the time.
	res := runTool(t.Context(), t, b.tool(), &sdk.Call{Workspace: ws}, map[string]any{
		"command": `trap '' TERM; f() { trap '' TERM; while [ ! -e stop ]; do (setsid sleep 0.01 &); done; }; for i in 1 2 3 4; do f & done; wait`, "timeout": 300,
	})
	if strings.Contains(res.Text, "could not be ended") {
		t.Errorf("got %q", res.Text)
	}
	b.quit()
	if !(&forest{}).bare() {
		t.Error("children are left")
	}
}

func TestAFloodIsBounded(t *testing.T) {
	call := &sdk.Call{Workspace: t.TempDir()}
	start := time.Now()
	res := runIn(t.Context(), t, call, map[string]any{"command": "echo first; head -c 100000000 /dev/zero | tr '\\0' 'x' | fold -w 99; echo last"})
	text := call.Written() + res.Text
	if len(text) > maxOutput {
		t.Errorf("kept %d bytes", len(text))
	}
	if !strings.HasPrefix(text, "first\n") || !strings.HasSuffix(text, "last\n") || !strings.Contains(text, " bytes left out)\n") {
		t.Errorf("got %q … %q", text[:50], text[len(text)-50:])
	}
	t.Logf("100 MB in %s", time.Since(start))
}

func TestBinaryOutputIsDescribed(t *testing.T) {
	for name, tc := range map[string]struct{ reason, command, want string }{
		"nul":     {"a NUL is enough", `printf 'a\0b'`, "(binary output, not shown: 3 bytes, no text in UTF-8)\n"},
		"png":     {"the type helps", `printf '\x89PNG\r\n\x1a\n\0\0\0\rIHDR'`, "(binary output, not shown: 16 bytes, image/png)\n"},
		"garbage": {"bytes without NUL", `head -c 4000 /dev/urandom | tr -d '\0' | head -c 3000`, "(binary output, not shown: 3000 bytes, "},
		"latin1":  {"a few bytes that are no UTF-8 are replaced", `printf 'caf\xe9 au lait\n'`, "caf\uFFFD au lait\n"},
		"utf8":    {"text is passed on", `printf 'caf\xc3\xa9 \xf0\x9f\x98\x80\n'`, "café 😀\n"},
		"colours": {"escapes are text", `printf '\033[1mbold\033[0m\n'`, "\x1b[1mbold\x1b[0m\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if res := sh(t, tc.command); !strings.HasPrefix(res.Text, tc.want) {
				t.Errorf("%s: got %q, want %q", tc.reason, res.Text, tc.want)
			}
		})
	}
}

func TestOutputOfManyOrphansIsCollected(t *testing.T) {
	res := sh(t, "for i in $(seq 50); do (setsid true &); done; echo ok")
	if !strings.HasPrefix(res.Text, "ok\n") {
		t.Errorf("got %q", res.Text)
	}
	if !(&forest{}).bare() {
		t.Error("children are left")
	}
}

func TestTitleIsTheCommandAndShort(t *testing.T) {
	res := runIn(t.Context(), t, &sdk.Call{Workspace: t.TempDir()}, map[string]any{"command": "true " + strings.Repeat("ä", 100), "description": "looks harmless"})
	if want := "true " + strings.Repeat("ä", 74) + "…"; res.Title != want {
		t.Errorf("got %q", res.Title)
	}
	for command, want := range map[string]string{
		"true\n": "true", "true\nfalse || true": "true … (+1 line)", "true # a \\\nfalse\n\ntrue\n": "true # a \\ … (+3 lines)",
	} {
		if res := sh(t, command); res.Title != want {
			t.Errorf("%q is called %q, want %q", command, res.Title, want)
		}
	}
}

func TestACommandRunsInAFolderThatWasApproved(t *testing.T) {
	out, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(out, "d/e"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("d", filepath.Join(out, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(out, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	at := func(name string) sdk.OutsidePath {
		return sdk.OutsidePath{Name: filepath.Join(out, name), Path: filepath.Join(out, name)}
	}
	tests := map[string]struct {
		workdir  string
		approved sdk.OutsidePath
		says     string
		fails    bool
	}{
		"approved":         {out + "/d", at("d"), out + "/d\n" + out + "/d", false},
		"by dots":          {out + "/d/../d/.", at("d"), out + "/d", false},
		"through a link":   {"x/../elsewhere", sdk.OutsidePath{Name: "$WS/elsewhere", Path: out + "/d/e"}, out + "/d/e", false},
		"below it":         {out + "/d/e", at("d"), "outside the workspace", true},
		"around it":        {out, at("d"), "outside the workspace", true},
		"a link":           {out + "/link", at("link"), "workdir", true},
		"behind a link":    {out + "/link/e", at("link/e"), "was replaced by a link", true},
		"a file":           {out + "/file", at("file"), "is not a folder", true},
		"nothing":          {out + "/none", at("none"), "does not exist", true},
		"nothing approved": {out + "/d", sdk.OutsidePath{}, "outside the workspace", true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			ws := t.TempDir()
			tc.approved.Name = strings.ReplaceAll(tc.approved.Name, "$WS", ws)
			res := runIn(t.Context(), t, &sdk.Call{Workspace: ws, Outside: []sdk.OutsidePath{tc.approved}}, map[string]any{"command": "pwd; readlink /proc/self/cwd", "workdir": tc.workdir})
			if res.IsError != tc.fails || !strings.Contains(res.Text, tc.says) {
				t.Errorf("error %v: %s", res.IsError, res.Text)
			}
		})
	}
}
