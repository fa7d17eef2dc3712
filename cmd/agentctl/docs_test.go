package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"agentctl.dev/agentctl/runner/storytest"
)

// TestDocs runs every block of commands in the pages for readers, in the stories of
// testdata/docs: each prepares the folder that its page supposes, and runs the blocks.
func TestDocs(t *testing.T) {
	libexec := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", libexec,
		"agentctl.dev/agentctl/cmd/agentd", "agentctl.dev/agentctl/cmd/agentctl-tools", "agentctl.dev/agentctl/cmd/agentctl-sandbox", "agentctl.dev/agentctl/cmd/agentctl-entry", "agentctl.dev/agentctl/cmd/agentctl-escape")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the programs beside agentctl: %v\n%s", err, out)
	}
	repository, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	var stories stories
	commands := storytest.Commands()
	commands["page"], commands["block"], commands["blocks"] = stories.page, stories.block, stories.blocks
	commands["shown"], commands["take"] = stories.shown, stories.take
	t.Run("pages", func(t *testing.T) {
		testscript.Run(t, testscript.Params{
			Dir:                 "testdata/docs",
			RequireExplicitExec: true,
			RequireUniqueNames:  true,
			Setup: func(env *testscript.Env) error {
				home := docsHome(t)
				env.Setenv("HOME", home)
				env.Setenv("PATH", filepath.Join(env.WorkDir, "bin")+string(os.PathListSeparator)+env.Getenv("PATH")+string(os.PathListSeparator)+libexec)
				env.Setenv("AGENTCTL_LIBEXEC", libexec)
				// Where there are no user namespaces, tools touch nothing but the story's
				// own folders.
				env.Setenv("AGENTCTL_OUTER_ISOLATION", "container")
				env.Setenv("GIT_CONFIG_NOSYSTEM", "1")
				env.Setenv("NO_COLOR", "1")
				env.Setenv("GORACE", os.Getenv("GORACE"))
				env.Setenv("REPOSITORY", repository)
				// Only the loopback interface is reachable through the proxy variables.
				for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
					env.Setenv(name, "http://127.0.0.1:1")
				}
				env.Setenv("NO_PROXY", "127.0.0.1,localhost")
				env.Setenv("no_proxy", "127.0.0.1,localhost")
				env.Setenv("GOPROXY", "off")
				env.Setenv("GOCACHE", goEnv(t, "GOCACHE"))
				storytest.Forge(env)
				env.Values[storyKey{}] = &story{t: t}
				return os.WriteFile(filepath.Join(home, ".gitconfig"), []byte("[user]\n\tname = Jane\n\temail = jane@example.com\n[init]\n\tdefaultBranch = main\n"), 0o600)
			},
			Condition: func(cond string) (bool, error) {
				if cond == "sandbox" {
					return canSandbox(), nil
				}
				return false, fmt.Errorf("unknown condition %q", cond)
			},
			Cmds: commands,
		})
	})
	for _, left := range stories.left() {
		t.Errorf("%s: its story runs other blocks of the page, and not this one", left)
	}
}

// goEnv is a setting of the go command, which a story with another HOME would not find.
func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// docsHome makes a home with a short path, for the sake of sockets below it, and ends its
// control plane with the test.
func docsHome(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "h")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if pid := controlPID(filepath.Join(dir, ".local", "state", "agentctl")); pid > 0 {
			_ = syscall.Kill(pid, syscall.SIGTERM)
			if err := awaitEnd(pid); err != nil {
				t.Error(err)
			}
		}
		_ = exec.Command("chmod", "-R", "u+w", dir).Run() //nolint:noctx,gosec // a copy may be read-only; RemoveAll reports what is left
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

type storyKey struct{}

// story is what the commands of one story know.
type story struct {
	t      *testing.T
	page   string
	blocks []block
	// done are the blocks that were run, and the blocks of output that were compared.
	done map[int]bool
	// output is what the last block printed.
	output string
}

// stories are all of them, for what is left in the end.
type stories struct {
	mu  sync.Mutex
	all []*story
}

// left are the blocks that the stories have left out.
func (s *stories) left() []block {
	var left []block
	for _, story := range s.all {
		for i, b := range story.blocks {
			if !story.done[i] && (b.commands() && b.skip == "" || b.language == "text") {
				left = append(left, b)
			}
		}
	}
	return left
}

func storyOf(ts *testscript.TestScript) *story { return ts.Value(storyKey{}).(*story) }

// page opens a page: page docs/ci.md.
func (s *stories) page(ts *testscript.TestScript, neg bool, args []string) {
	st := storyOf(ts)
	if neg || len(args) != 1 || st.page != "" {
		ts.Fatalf("usage, once: page FILE")
	}
	st.page, st.blocks, st.done = args[0], pageBlocks(st.t, args[0]), map[int]bool{}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, st)
}

// block runs the block that holds a text, the first that was not run yet:
//
//	block 'agentctl run -f agents' ['OLD=>NEW'...] ['CODE=COMMAND'...]
//
// OLD, which has to be there, is replaced in the block: an id, or what the reader has to
// fill in. CODE is the exit code of the commands that begin with COMMAND, 0 of others.
func (s *stories) block(ts *testscript.TestScript, neg bool, args []string) {
	st := storyOf(ts)
	if neg || len(args) == 0 {
		ts.Fatalf("usage: block TEXT [OLD=>NEW...] [CODE=COMMAND...]")
	}
	at := slices.IndexFunc(st.blocks, func(b block) bool {
		return b.commands() && b.skip == "" && strings.Contains(b.text, args[0]) && !st.done[slices.IndexFunc(st.blocks, func(o block) bool { return o == b })]
	})
	if at < 0 {
		ts.Fatalf("%s has no block with %q that is to be run, and was not run yet", st.page, args[0])
	}
	st.run(ts, at, args[1:])
}

// blocks runs all blocks of the page that were not run yet.
func (s *stories) blocks(ts *testscript.TestScript, neg bool, args []string) {
	st := storyOf(ts)
	ran := 0
	for i, b := range st.blocks {
		if b.commands() && b.skip == "" && !st.done[i] {
			st.run(ts, i, args)
			ran++
		}
	}
	if neg || ran == 0 {
		ts.Fatalf("%s has no block that was not run yet", st.page)
	}
}

var exitOf = regexp.MustCompile(`^([0-9]+)=(.+)$`)

// run runs the commands of a block in one shell, each with its exit code and its output.
func (st *story) run(ts *testscript.TestScript, at int, args []string) {
	b := st.blocks[at]
	st.done[at] = true
	codes := map[string]int{}
	for _, arg := range args {
		if before, after, is := strings.Cut(arg, "=>"); is {
			if !strings.Contains(b.text, before) {
				ts.Fatalf("%s does not hold %q", b, before)
			}
			b.text = strings.ReplaceAll(b.text, before, after)
			continue
		}
		m := exitOf.FindStringSubmatch(arg)
		if m == nil {
			ts.Fatalf("%q is neither OLD=>NEW nor CODE=COMMAND", arg)
		}
		codes[m[2]] = number(ts, m[1])
	}
	steps, err := b.steps()
	ts.Check(err)
	dir, err := os.MkdirTemp(st.t.TempDir(), "block")
	ts.Check(err)
	var script strings.Builder
	script.WriteString("set -o pipefail\n")
	for i, step := range steps {
		want := 0
		for prefix, code := range codes {
			if strings.HasPrefix(step.text, prefix) {
				want = code
				delete(codes, prefix)
				break
			}
		}
		out := filepath.Join(dir, strconv.Itoa(i))
		fmt.Fprintf(&script, "{ %s\n} >'%s' 2>&1\n[ $? = %d ] || exit 99\n", step.text, out, want)
	}
	for prefix := range codes {
		ts.Fatalf("%s: no command begins with %q", b, prefix)
	}
	failed := ts.Exec("timeout", "300", "bash", "-c", script.String())
	st.output = ""
	for i, step := range steps {
		out, err := os.ReadFile(filepath.Join(dir, strconv.Itoa(i)))
		if err != nil {
			break
		}
		ts.Logf("$ %s\n%s", step.text, out)
		st.output += string(out)
		got := strings.Split(strings.TrimRight(string(out), "\n"), "\n")
		if failed == nil && step.compared && !fits(step.shown, got) {
			ts.Fatalf("%s: %s prints what is above, which has not the shape that the page shows:\n%s", b, step.text, strings.Join(step.shown, "\n"))
		}
	}
	if failed != nil {
		ts.Fatalf("%s: the last command above did not end as it should: %v", b, failed)
	}
	ts.Check(os.WriteFile(ts.MkAbs("output"), []byte(st.output), 0o600))
}

// shown compares the output of the last block, or a file, with the block of output that
// holds a text: shown 'Succeeded' [FILE] [OLD=>NEW...]. It has to be a part of it.
func (s *stories) shown(ts *testscript.TestScript, neg bool, args []string) {
	st := storyOf(ts)
	if neg || len(args) == 0 {
		ts.Fatalf("usage: shown TEXT [FILE] [OLD=>NEW...]")
	}
	at := slices.IndexFunc(st.blocks, func(b block) bool { return b.language == "text" && strings.Contains(b.text, args[0]) })
	if at < 0 {
		ts.Fatalf("%s shows no output with %q", st.page, args[0])
	}
	st.done[at] = true
	output, text := st.output, st.blocks[at].text
	for _, arg := range args[1:] {
		before, after, is := strings.Cut(arg, "=>")
		switch {
		case !is:
			output = ts.ReadFile(arg)
		case !strings.Contains(text, before):
			ts.Fatalf("%s does not hold %q", st.blocks[at], before)
		default:
			text = strings.ReplaceAll(text, before, after)
		}
	}
	want := strings.Split(strings.TrimRight(text, "\n"), "\n")
	got := strings.Split(strings.NewReplacer("\r", "").Replace(strings.TrimRight(output, "\n")), "\n")
	if !fits(append(append([]string{"..."}, want...), "..."), got) {
		ts.Fatalf("%s shows\n%s\nand that is not the shape of\n%s", st.blocks[at], st.blocks[at].text, output)
	}
}

// take writes the block behind a text of a page into a file, as a reader does:
// take agents/publish.yaml 'agents/publish.yaml' [PAGE].
func (s *stories) take(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: take FILE TEXT [PAGE]")
	}
	page := storyOf(ts).page
	if len(args) == 3 {
		page = args[2]
	}
	text, err := os.ReadFile(filepath.Join("../..", page))
	ts.Check(err)
	_, rest, found := strings.Cut(string(text), args[1])
	_, rest, fenced := strings.Cut(rest, "\n```")
	_, rest, _ = strings.Cut(rest, "\n")
	content, _, closed := strings.Cut(rest, "```")
	if !found || !fenced || !closed {
		ts.Fatalf("%s has no block behind %q", page, args[1])
	}
	file := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(filepath.Dir(file), 0o755))     //nolint:gosec // a story's
	ts.Check(os.WriteFile(file, []byte(content), 0o644)) //nolint:gosec // a story's
}

func number(ts *testscript.TestScript, text string) int {
	n, err := strconv.Atoi(text)
	ts.Check(err)
	return n
}

// TestEveryBlockOfTheDocsIsRun, in the story of its page, or is marked with a reason; and
// not too many are.
func TestEveryBlockOfTheDocsIsRun(t *testing.T) {
	stories, err := filepath.Glob("testdata/docs/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	opens := map[string]bool{}
	for _, story := range stories {
		text, err := os.ReadFile(story)
		if err != nil {
			t.Fatal(err)
		}
		m := regexp.MustCompile(`(?m)^page (\S+)$`).FindStringSubmatch(string(text))
		if m == nil {
			t.Errorf("%s opens no page", story)
			continue
		}
		if opens[m[1]] {
			t.Errorf("two stories open %s", m[1])
		}
		opens[m[1]] = true
	}
	run, marked := 0, map[string]int{}
	for _, page := range docsPages(t) {
		needed := false
		for _, b := range pageBlocks(t, page) {
			if !slices.Contains([]string{"sh", "console", "text", "text fragment", "yaml", "yaml fragment", "json", "go", "python", "toml", "dockerfile", "diff"}, b.language) {
				t.Errorf("%s: the fence names no language that is known here: %q", b, b.language)
			}
			if b.commands() {
				if _, err := b.steps(); err != nil {
					t.Error(err)
				}
			}
			switch {
			case b.skip != "":
				marked[b.skip]++
			case b.commands():
				run++
				needed = true
			case b.language == "text":
				needed = true
			}
		}
		if needed && !opens[page] {
			t.Errorf("%s: no story of testdata/docs runs its commands", page)
		}
		delete(opens, page)
	}
	for page := range opens {
		t.Errorf("%s: there is a story, and no such page", page)
	}
	all := 0
	for _, n := range marked {
		all += n
	}
	t.Logf("%d blocks are run, %d are not: %v", run, all, marked)
	if all*100 > 15*(run+all) {
		t.Errorf("%d of %d blocks are not run: more than 15 %%", all, run+all)
	}
}
