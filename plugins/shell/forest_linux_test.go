package shell

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestUnderARunnersMark runs commands as below a runner, which gives every program it
// starts a hard limit of its own. A limit cannot be raised again, so a copy of this
// program has it.
func TestUnderARunnersMark(t *testing.T) {
	const variable = "SHELL_TEST_LIMIT"
	if text := os.Getenv(variable); text != "" {
		limit, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.Prlimit(0, unix.RLIMIT_RTTIME, &unix.Rlimit{Cur: limit, Max: limit}, nil); err != nil {
			t.Fatal(err)
		}
		underALimit(t, limit)
		return
	}
	for name, tc := range map[string]struct {
		reason string
		limit  uint64
	}{
		"mark": {"a runner's mark leaves room for marks below it", leastMark * 3},
		"low":  {"a limit without room leaves process groups", leastMark},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestUnderARunnersMark$", "-test.count=1")
			cmd.Env = append(os.Environ(), variable+"="+strconv.FormatUint(tc.limit, 10))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", tc.reason, err, out)
			}
		})
	}
}

func underALimit(t *testing.T, limit uint64) {
	t.Helper()
	t.Run("background", func(t *testing.T) {
		res := sh(t, "sleep 300 & sleep 301 & true")
		if strings.Contains(res.Text, "could not be ended") || !strings.Contains(res.Text, "ended with it]") {
			t.Errorf("got %q", res.Text)
		}
		if d, ok := res.Metadata.(bashData); !ok || d.DurationMs >= grace.Milliseconds() {
			t.Errorf("processes that have ended were waited for: %+v", res.Metadata)
		}
	})
	if limit < 2*leastMark {
		return
	}
	t.Run("tree", TestNoProcessOutlivesTheCall)
	t.Run("daemon", TestADaemonThatIgnoresTermDiesToo)
	t.Run("beside", TestCallsDoNotEndEachOthersProcesses)
}
