package shell

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// passed on to the real program: these start others.
var starters = []string{"bash", "sh", "env", "xargs", "timeout", "nice", "nohup", "find", "setsid", "stdbuf"}

// stubs makes a folder of programs that do nothing but say that they ran.
func stubs(t *testing.T) string {
	t.Helper()
	bin := t.TempDir()
	write := func(name, body string) {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/bash\n"+`echo "${0##*/}" >> "$STUBLOG"`+"\n"+body), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range starters {
		if program, err := exec.LookPath(name); err == nil {
			write(name, fmt.Sprintf("exec %s \"$@\"\n", program))
		}
	}
	for _, name := range []string{
		"rm", "ls", "cat", "tee", "curl", "git", "grep", "sed", "awk", "sort", "head", "tail", "wc", "mkdir", "touch", "cp", "mv", "sudo", "watch", "cargo", "npm", "go", "make", "tar", "dd",
		"ping", "base64", "perl", "python3", "rg", "docker", "date", "sleep", "tr", "xxd", "jq", "diff", "chmod", "env2", "server", "id", "uniq", "seq", "basename", "ps", "du", "which", "node", "pip",
	} {
		write(name, "")
	}
	return bin
}

// observe runs a script in real bash and returns which programs ran.
func observe(t *testing.T, bin, script string) []string {
	t.Helper()
	dir := t.TempDir()
	log := filepath.Join(dir, ".log")
	work := filepath.Join(dir, "w")
	if err := os.Mkdir(work, 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	c := exec.CommandContext(ctx, "/bin/bash", "--norc", "--noprofile", "-c", script)
	c.Dir, c.Env, c.WaitDelay = work, []string{"PATH=" + bin, "HOME=" + work, "STUBLOG=" + log, "TMPDIR=" + work}, 100*time.Millisecond
	_ = c.Run()
	b, _ := os.ReadFile(log)
	ran := strings.Fields(string(b))
	slices.Sort(ran)
	return slices.Compact(ran)
}

// generated makes scripts that run a, b, ... in nested constructs.
func generated(n int) []string {
	r := rand.New(rand.NewPCG(7, 9))
	var script func(depth int) string
	leaves := []string{"rm x", "ls -l", "'r'm x", `c\at f`, "$'\\x6cs'", "{touch,q}", "X=1 wc f", "mkdir d", "head f", ": ", "x=1", "true"}
	script = func(depth int) string {
		if depth == 0 {
			return leaves[r.IntN(len(leaves))]
		}
		s, u := func() string { return script(depth - 1) }, func() string { return script(depth / 2) }
		switch r.IntN(24) {
		case 0:
			return s() + "; " + u()
		case 1:
			return s() + " && " + u()
		case 2:
			return s() + " || " + u()
		case 3:
			return s() + " | " + u()
		case 4:
			return "(" + s() + ")"
		case 5:
			return "{ " + s() + "; }"
		case 6:
			return "echo $(" + s() + ")"
		case 7:
			return "echo \"a`" + strings.NewReplacer("`", "", "\\", "").Replace(script(0)) + "`\""
		case 8:
			return "if " + s() + "; then " + u() + "; else " + u() + "; fi"
		case 9:
			return "for i in a b; do " + s() + "; done"
		case 10:
			return "case a in a) " + s() + ";; *) " + u() + ";; esac"
		case 11:
			return "cat <<E\n$(" + s() + ")\nE\n"
		case 12:
			return "cat <(" + s() + ")"
		case 13:
			return "f() { " + s() + "; }; f"
		case 14:
			return "echo ${y:-$(" + s() + ")}"
		case 15:
			return "echo $(( $(" + s() + "; echo 1) + 1 ))"
		case 16:
			return "[[ -n $(" + s() + ") ]]"
		case 17:
			return "! " + s()
		case 18:
			return "env A=1 bash -c '" + strings.ReplaceAll(s(), "'", `'\''`) + "'"
		case 19:
			return "eval '" + strings.ReplaceAll(s(), "'", `'\''`) + "'"
		case 20:
			return "timeout 5 nice -n 1 " + script(0)
		case 21:
			return "a=([1]=$(" + s() + "))"
		case 22:
			return "while " + s() + "; do " + u() + "; break; done"
		default:
			return s() + " > $(" + u() + "; echo f)"
		}
	}
	out := []string{}
	for range n {
		out = append(out, script(1+r.IntN(4)))
	}
	return out
}

// TestRealBashRunsNothingUnreported runs scripts in real bash with programs
// that only say that they ran: what ran must have been reported, or the script
// must be dynamic.
func TestRealBashRunsNothingUnreported(t *testing.T) {
	if _, err := os.Stat("/bin/bash"); err != nil {
		t.Skip("there is no /bin/bash to compare with")
	}
	bin := stubs(t)
	n := 60
	if s := os.Getenv("SHELL_SCRIPTS"); s != "" {
		_, _ = fmt.Sscan(s, &n)
	}
	scripts := slices.Concat(generated(n), hostile, soup(5*n))
	for _, e := range corpus(t) {
		scripts = append(scripts, e.Command)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	known, ran := 0, 0
	slots := make(chan struct{}, 8)
	for _, script := range scripts {
		f := Parse(script, "")
		// A dynamic or opaque script claims nothing; absolute programs are not stubs, and devices
		// are real.
		if f.Dynamic || f.Opaque || strings.Contains(script, "/bin/") || strings.Contains(script, "/dev/tcp") || strings.Contains(script, "/dev/sd") {
			continue
		}
		known++
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			observed := observe(t, bin, script)
			mu.Lock()
			defer mu.Unlock()
			ran += len(observed)
			for _, name := range observed {
				if !slices.Contains(names(f), name) {
					t.Errorf("%q ran %s, reported %v", script, name, names(f))
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d of %d scripts are known, %d programs ran", known, len(scripts), ran)
	if known < n/2 || ran < n/2 {
		t.Errorf("only %d scripts and %d programs were compared", known, ran)
	}
}
