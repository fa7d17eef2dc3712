package gitsource

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/secret"
	"agentctl.dev/agentctl/runner/workspace"
)

// command runs git as a person with an empty configuration does.
func command(t *testing.T, dir, stdin string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "init.defaultBranch=main"}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	cmd.Stdin = strings.NewReader(stdin)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, errs.String())
	}
	return strings.TrimSpace(string(out))
}

// repository is one with two commits on main, the first with a tag, and a branch.
func repository(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "project.git")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	command(t, dir, "", "init", "-q")
	write(t, dir, map[string]string{"a.txt": "first\n"})
	command(t, dir, "", "add", ".")
	command(t, dir, "", "commit", "-qm", "first")
	command(t, dir, "", "tag", "v1")
	command(t, dir, "", "branch", "side")
	write(t, dir, map[string]string{"a.txt": "second\n"})
	write(t, dir, files)
	command(t, dir, "", "add", ".")
	command(t, dir, "", "commit", "-qm", "second")
	return dir
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func clone(t *testing.T, src v1alpha1.GitSource, change ...func(*Options)) (*Clone, string, error) {
	t.Helper()
	o := Options{Source: &src, Dir: filepath.Join(t.TempDir(), "run", "clone")}
	for _, c := range change {
		c(&o)
	}
	c, err := New(t.Context(), o)
	if _, missing := os.Lstat(o.Dir); (err == nil) != (missing == nil) {
		t.Errorf("the error is %v, and of the folder: %v", err, missing)
	}
	return c, o.Dir, err
}

func content(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestARefLeadsToItsCommit(t *testing.T) {
	dir := repository(t, nil)
	first, second := command(t, dir, "", "rev-parse", "v1"), command(t, dir, "", "rev-parse", "main")
	all := int32(0)
	for name, c := range map[string]struct {
		reason, ref   string
		depth         *int32
		commit, text  string
		branch, count string
	}{
		"default": {"the branch that HEAD names", "", nil, second, "second\n", "main", "1"},
		"branch":  {"by its name", "side", nil, first, "first\n", "side", "1"},
		"tag":     {"by its name", "v1", nil, first, "first\n", "HEAD", "1"},
		"commit":  {"by its whole id", first, nil, first, "first\n", "HEAD", "1"},
		"full":    {"by its full name", "refs/heads/side", nil, first, "first\n", "HEAD", "1"},
		"whole":   {"all of the history", "", &all, second, "second\n", "main", "2"},
	} {
		got, clone, err := clone(t, v1alpha1.GitSource{URL: "file://" + dir, Ref: c.ref, Depth: c.depth})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got.Commit != c.commit || content(t, filepath.Join(clone, "a.txt")) != c.text {
			t.Errorf("%s (%s): commit %s, want %s", name, c.reason, got.Commit, c.commit)
		}
		if b := command(t, clone, "", "rev-parse", "--abbrev-ref", "HEAD"); b != c.branch {
			t.Errorf("%s: on %s, want %s", name, b, c.branch)
		}
		if n := command(t, clone, "", "rev-list", "--count", "HEAD"); n != c.count {
			t.Errorf("%s: %s commits, want %s", name, n, c.count)
		}
		if s := command(t, clone, "", "status", "--porcelain"); s != "" {
			t.Errorf("%s: the clone differs from its commit:\n%s", name, s)
		}
	}
	_, _, err := clone(t, v1alpha1.GitSource{URL: "file://" + dir, Ref: "nowhere"})
	if reason.Of(err) != reason.WorkspaceUnavailable || !strings.Contains(reason.Hint(err), "a branch, a tag") {
		t.Errorf("a ref that leads nowhere: %v (%s)", err, reason.Hint(err))
	}
	_, _, err = clone(t, v1alpha1.GitSource{URL: "file://" + dir}, func(o *Options) { o.Skip = []string{filepath.Dir(dir)} })
	if err == nil || !strings.Contains(err.Error(), "lies in the state folder") {
		t.Errorf("a repository among the files of other runs: %v", err)
	}
	for name, lead := range map[string]func(dot string) error{
		"a file": func(dot string) error {
			return os.WriteFile(dot, []byte("gitdir: "+filepath.Join(dir, ".git")+"\n"), 0o600)
		},
		"a link": func(dot string) error { return os.Symlink(filepath.Join(dir, ".git"), dot) },
	} {
		other := t.TempDir()
		if err := lead(filepath.Join(other, ".git")); err != nil {
			t.Fatal(err)
		}
		if _, _, err := clone(t, v1alpha1.GitSource{URL: "file://" + other}); err != nil {
			t.Errorf("%s that leads to a repository: %v", name, err)
		}
		_, _, err = clone(t, v1alpha1.GitSource{URL: "file://" + other}, func(o *Options) { o.Skip = []string{filepath.Dir(dir)} })
		if err == nil || !strings.Contains(err.Error(), "lies in the state folder") {
			t.Errorf("%s that leads to one among the files of other runs: %v", name, err)
		}
	}
}

// TestNothingOfTheRepositoryOrTheUserIsRun has every place where a program can be named
// name one that leaves a mark. The same clone by hand leaves it.
func TestNothingOfTheRepositoryOrTheUserIsRun(t *testing.T) {
	home, mark := t.TempDir(), filepath.Join(t.TempDir(), "mark")
	hook := "#!/bin/sh\ntouch " + mark + "\n"
	for _, name := range []string{"post-checkout", "reference-transaction", "post-index-change"} {
		for _, dir := range []string{"hooks", "template/hooks"} {
			write(t, home, map[string]string{filepath.Join(dir, name): hook})
			if err := os.Chmod(filepath.Join(home, dir, name), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	write(t, home, map[string]string{".gitconfig": `[core]
	hooksPath = ` + home + `/hooks
	fsmonitor = touch ` + mark + `
[init]
	templateDir = ` + home + `/template
[filter "lfs"]
	smudge = touch ` + mark + `; cat
	required = true
[filter "evil"]
	process = touch ` + mark + `
	smudge = touch ` + mark + `; cat
[submodule]
	recurse = true
[protocol "ext"]
	allow = always
[protocol "file"]
	allow = always
`})
	dir := repository(t, map[string]string{
		".gitattributes": "*.bin filter=lfs\n*.txt filter=evil\n", "large.bin": "version https://git-lfs.github.com/spec/v1\n",
		".gitmodules": "[submodule \"x\"]\n\tpath = x\n\turl = ext::sh -c touch% " + mark + "\n\tupdate = !touch " + mark + "\n",
	})
	command(t, dir, "", "update-index", "--add", "--cacheinfo", "160000,"+command(t, dir, "", "rev-parse", "v1")+",x")
	command(t, dir, "", "commit", "-qm", "submodule")
	t.Setenv("HOME", home)
	t.Setenv("GIT_CONFIG_GLOBAL", filepath.Join(home, ".gitconfig"))
	t.Setenv("GIT_TEMPLATE_DIR", filepath.Join(home, "template"))
	t.Setenv("GIT_CONFIG_COUNT", "1")
	t.Setenv("GIT_CONFIG_KEY_0", "filter.evil.smudge")
	t.Setenv("GIT_CONFIG_VALUE_0", "touch "+mark+"; cat")

	for _, ref := range []string{"", "main", command(t, dir, "", "rev-parse", "main")} {
		c, at, err := clone(t, v1alpha1.GitSource{URL: "file://" + dir, Ref: ref})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Lstat(mark); !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("ref %q: a program was started", ref)
		}
		if got := content(t, filepath.Join(at, "large.bin")); !strings.HasPrefix(got, "version https://git-lfs") {
			t.Errorf("the pointer is %q", got)
		}
		if len(c.Notes) != 2 || !strings.Contains(c.Notes[0], "1 submodules") || !strings.Contains(c.Notes[1], "Git LFS") {
			t.Errorf("notes: %q", c.Notes)
		}
	}
	by := exec.CommandContext(t.Context(), "git", "clone", "-q", "file://"+dir, filepath.Join(t.TempDir(), "by-hand"))
	_ = by.Run() // it fails at what its filters print
	if _, err := os.Lstat(mark); err != nil {
		t.Errorf("the same clone by hand started none of the programs: the test proves nothing: %v", err)
	}
}

// server serves the folder of a repository as git servers do.
func server(t *testing.T, dir string, allow func(r *http.Request) bool) *httptest.Server {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", "--exec-path").Output()
	backend := filepath.Join(strings.TrimSpace(string(out)), "git-http-backend")
	if _, found := os.Stat(backend); err != nil || found != nil {
		t.Skip("this git has no http-backend")
	}
	t.Setenv("no_proxy", "127.0.0.1")
	h := &cgi.Handler{Path: backend, Env: []string{"GIT_PROJECT_ROOT=" + filepath.Dir(dir), "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if allow != nil && !allow(r) {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			http.Error(w, "who are you", http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func TestThePasswordGoesToTheServerAndNowhereElse(t *testing.T) {
	const token = "tok-7f3a9c"
	dir := repository(t, nil)
	s := server(t, dir, func(r *http.Request) bool {
		user, password, _ := r.BasicAuth()
		return user == "bot" && password == token
	})
	src := v1alpha1.GitSource{URL: s.URL + "/project.git"}
	_, _, err := clone(t, src)
	if reason.Of(err) != reason.CredentialMissing || !strings.Contains(reason.Hint(err), "source.git.auth") {
		t.Errorf("without a password: %v (%s)", err, reason.Hint(err))
	}
	src.Auth = &v1alpha1.GitAuth{Username: "bot"}
	_, _, err = clone(t, src, func(o *Options) { o.Password = secret.NewValue("wrong-" + token) })
	if reason.Of(err) != reason.CredentialRejected || strings.Contains(err.Error()+reason.Hint(err), token) {
		t.Errorf("with a wrong password: %v (%s)", err, reason.Hint(err))
	}
	_, at, err := clone(t, src, func(o *Options) { o.Password = secret.NewValue(token) })
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(at, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && strings.Contains(content(t, p), token) {
			t.Errorf("%s holds the password", p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestARedirectIsNotFollowed(t *testing.T) {
	dir := repository(t, nil)
	var asked atomic.Int64
	private := server(t, dir, func(*http.Request) bool { asked.Add(1); return true })
	from := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, private.URL+r.URL.RequestURI(), http.StatusFound)
	}))
	defer from.Close()
	_, _, err := clone(t, v1alpha1.GitSource{URL: from.URL + "/project.git"}, func(o *Options) { o.Password = secret.NewValue("x-token") })
	if err == nil || !strings.Contains(reason.Hint(err), "redirects are not followed") {
		t.Errorf("%v (%s)", err, reason.Hint(err))
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("the private server was asked %d times", n)
	}
	if _, _, err := clone(t, v1alpha1.GitSource{URL: private.URL + "/project.git"}); err != nil || asked.Load() == 0 {
		t.Errorf("without the redirect: %v", err)
	}
}

func TestWhatIsTooLargeIsRefused(t *testing.T) {
	noise := make([]byte, 3<<20)
	for i, x := 0, uint32(1); i < len(noise); i++ {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		noise[i] = byte(x)
	}
	limit := func(o *Options) { o.SizeLimit, o.MaxFiles = 1<<20, 1000 }
	t.Run("history", func(t *testing.T) {
		dir := repository(t, map[string]string{"noise": string(noise)})
		command(t, dir, "", "rm", "-q", "noise")
		command(t, dir, "", "commit", "-qm", "gone")
		all := int32(0)
		_, _, err := clone(t, v1alpha1.GitSource{URL: "file://" + dir, Depth: &all}, limit)
		tooLarge(t, err, "history")
		if _, _, err := clone(t, v1alpha1.GitSource{URL: "file://" + dir}, limit); err != nil {
			t.Errorf("the same without its history: %v", err)
		}
	})
	t.Run("file", func(t *testing.T) { // a few bytes in the history
		dir := repository(t, map[string]string{"zeros": string(make([]byte, 8<<20))})
		_, _, err := clone(t, v1alpha1.GitSource{URL: "file://" + dir}, limit)
		tooLarge(t, err, "its files take")
	})
	t.Run("bomb", func(t *testing.T) { // 10^12 files in a few trees
		dir := repository(t, nil)
		id := command(t, dir, "x", "hash-object", "-w", "--stdin")
		kind := "100644 blob "
		for range 12 {
			tree := ""
			for name := range strings.SplitSeq("abcdefghij", "") {
				tree += kind + id + "\t" + name + "\n"
			}
			id, kind = command(t, dir, tree, "mktree"), "040000 tree "
		}
		command(t, dir, "", "update-ref", "refs/heads/bomb", command(t, dir, "", "commit-tree", "-m", "bomb", id))
		_, _, err := clone(t, v1alpha1.GitSource{URL: "file://" + dir, Ref: "bomb"}, limit)
		tooLarge(t, err, "more than 1000 files")
	})
}

func tooLarge(t *testing.T, err error, want string) {
	t.Helper()
	if !errors.Is(err, workspace.ErrTooLarge) || !strings.Contains(err.Error(), want) || reason.Of(err) != reason.WorkspaceUnavailable {
		t.Errorf("%v, want %q", err, want)
	}
}

func TestACloneEndsWithItsContext(t *testing.T) {
	asked := make(chan struct{}, 1)
	t.Setenv("no_proxy", "127.0.0.1")
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case asked <- struct{}{}:
		default:
		}
		<-r.Context().Done() // it never answers
	}))
	defer s.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := reason.New(reason.DeadlineExceeded, "limits.timeout of 1s passed")
	go func() {
		<-asked
		cancel(cause)
	}()
	dir := filepath.Join(t.TempDir(), "clone")
	_, err := New(ctx, Options{Source: &v1alpha1.GitSource{URL: s.URL + "/project.git"}, Dir: dir})
	if reason.Of(err) != reason.DeadlineExceeded {
		t.Errorf("%v", err)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is left: %v", err)
	}
}
