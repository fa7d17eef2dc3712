package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"agentctl.dev/agentctl/plugins/host"
	"agentctl.dev/agentctl/plugins/sdktest"
)

const (
	// corpusSize is how much is searched.
	corpusSize = 100 << 20
	// largeFile is the size of a file of the corpus of few files; grep leaves out those
	// above 10 MiB.
	largeFile = 8 << 20
	// corpusIgnores is what both sides leave out.
	corpusIgnores = "*.log\n*.tmp\n/build/\nnode_modules/\n*.o\n*.a\n.DS_Store\ndist/\n!keep.log\nvendor/cache/\n**/tmp/**\ncoverage.out\n"
)

// patterns are the kinds of expressions that are searched for.
func patterns() []struct{ kind, text string } {
	return []struct{ kind, text string }{
		{"literal", "ReadDirFile"},
		{"letters of any case", "(?i)readdirfile"},
		{"regexp with a literal", `func \(\w+ \*?Decoder\) \w+Token\b`},
		{"one of three literals", "ErrNotExistAt|errClosingBody|NotFoundIn"},
		{"regexp without a literal", `\b[a-z]{2}[0-9]{5}\b\s+[QXZ]`},
		{"no match", "zqxjkvbw"},
		{"more matches than are shown", "return"},
	}
}

// measureGrep compares a call of the grep tool with ripgrep on the same files. The floor
// is ripgrep, with as many threads as there are processors.
func measureGrep(ctx context.Context, b *bench, reps int) error {
	rg, err := exec.LookPath("rg")
	if err != nil {
		b.report.note("ripgrep (rg) is not installed: agentctl alone was measured")
	}
	tool := filepath.Join(filepath.Dir(b.agentctl), "agentctl-tools")
	for _, of := range []struct {
		name  string
		large bool
	}{{"100 MB in many files", false}, {"100 MB in few files", true}} {
		dir := filepath.Join(b.dir, "corpus")
		if err := makeCorpus(ctx, dir, of.large); err != nil {
			return fmt.Errorf("make a corpus of Go's own sources: %w", err)
		}
		p, err := host.Start(ctx, host.Options{Name: tool, Launch: sdktest.Launch([]string{tool}, nil, dir)})
		if err != nil {
			return err
		}
		for _, pattern := range patterns() {
			samples, err := searches(ctx, p, rg, dir, pattern.text, reps)
			if err != nil {
				_ = p.Close(ctx)
				return fmt.Errorf("%s, %s: %w", of.name, pattern.kind, err)
			}
			limit := atMostFloor(1.5)
			if rg == "" {
				limit = nil
			}
			compare(b.report, of.name+": "+pattern.kind, "ms", samples, ms, limit)
			fmt.Fprint(b.progress, ".")
		}
		_ = p.Close(ctx)
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	return nil
}

// searches measures both sides in turn, after one search each that warms the page cache.
func searches(ctx context.Context, p *host.Plugin, rg, dir, pattern string, reps int) (both[time.Duration], error) {
	var all both[time.Duration]
	for rep := range reps + 1 {
		ours, err := ourSearch(ctx, p, dir, pattern)
		if err != nil {
			return all, err
		}
		var theirs time.Duration
		if rg != "" {
			if theirs, err = ripgrep(ctx, rg, dir, pattern); err != nil {
				return all, err
			}
		}
		if rep == 0 {
			continue
		}
		all.ours = append(all.ours, ours)
		if rg != "" {
			all.floor = append(all.floor, theirs)
		}
	}
	return all, nil
}

func ourSearch(ctx context.Context, p *host.Plugin, dir, pattern string) (time.Duration, error) {
	args, err := json.Marshal(map[string]string{"pattern": pattern})
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	got, err := p.Call(ctx, host.CallRequest{Tool: "grep", Args: args, ID: "1", Run: "bench", Workspace: dir, Timeout: time.Minute}, nil)
	took := time.Since(begin)
	if err == nil && got.IsError {
		err = errors.New(got.Text)
	}
	return took, err
}

// ripgrep searches as the grep tool does: hidden files too, .gitignore without a
// repository, and no more lines than the tool shows.
func ripgrep(ctx context.Context, rg, dir, pattern string) (time.Duration, error) {
	script := fmt.Sprintf(`"$0" --line-number --no-heading --hidden --no-require-git --glob '!.git' --max-filesize 10M --threads %d --regexp "$1" . | head -n 100`, runtime.NumCPU())
	cmd := exec.CommandContext(ctx, "sh", "-c", script, rg, pattern)
	cmd.Dir = dir
	begin := time.Now()
	err := cmd.Run()
	return time.Since(begin), err
}

// makeCorpus copies the sources of the Go that builds the benchmark, again and again, until
// there is enough; as they are or joined to large files.
func makeCorpus(ctx context.Context, dir string, large bool) error {
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return err
	}
	src := filepath.Join(strings.TrimSpace(string(out)), "src")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, ".gitignore"), []byte(corpusIgnores), 0o644); err != nil {
		return err
	}
	total := 0
	var joined []byte
	for round := 0; total < corpusSize; round++ {
		before := total
		err := filepath.WalkDir(src, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(name) != ".go" {
				return err
			}
			text, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			if total += len(text); total >= corpusSize {
				return fs.SkipAll
			}
			if joined = append(joined, text...); large && len(joined) < largeFile {
				return nil
			}
			to := filepath.Join(dir, fmt.Sprintf("copy%d", round), strings.TrimPrefix(name, src))
			if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
				return err
			}
			err = os.WriteFile(to, joined, 0o644)
			joined = joined[:0]
			return err
		})
		if err != nil {
			return err
		}
		if total == before {
			return fmt.Errorf("no Go sources in %s", src)
		}
	}
	return nil
}
