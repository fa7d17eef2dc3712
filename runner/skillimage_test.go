package runner

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/decisions"
)

// pushedSkill is a registry on this host with one skill, and the reference of that.
func pushedSkill(t *testing.T, files map[string]string) (server *httptest.Server, ref string) {
	t.Helper()
	t.Setenv("DOCKER_CONFIG", t.TempDir()) // no credentials of this machine
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for name, text := range files {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	img, err := mutate.AppendLayers(mutate.MediaType(empty.Image, types.OCIManifestSchema1), static.NewLayer(out.Bytes(), types.OCIUncompressedLayer))
	if err != nil {
		t.Fatal(err)
	}
	sum, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	server = httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	tag, err := name.NewTag(strings.TrimPrefix(server.URL, "http://") + "/team/count:1")
	if err != nil {
		t.Fatal(err)
	}
	transport := remote.DefaultTransport.(interface{ CloseIdleConnections() })
	if err := remote.Write(tag, img); err != nil {
		t.Fatal(err)
	}
	transport.CloseIdleConnections()
	return server, tag.Context().Name() + "@" + sum.String()
}

const counting = `---
name: count
description: Counts lines.
---
Call it with a path.
`

// imageAgent is an agent that loads the skill of an image, and runs its script.
func imageAgent(ref string) string {
	return agent("tools: [{name: read}]\nskills: [{name: count}]\napprovals: {onAsk: Suspend}\npolicyRefs: [{name: p}]", `
- calls: [{tool: skill, args: {name: count}}, {tool: skill, args: {name: count, file: references/a.md}}]
- calls: [{tool: count, args: {path: notes.txt}}]
- say: done
`, "apiVersion: agentctl.dev/v1alpha1\nkind: Skill\nmetadata: {name: count}\nspec: {image: \""+ref+"\"}\n",
		"apiVersion: agentctl.dev/v1alpha1\nkind: Policy\nmetadata: {name: p}\nspec: {rules: [{name: asks, match: {tools: [count]}, action: ask}]}\n")
}

var countFiles = map[string]string{
	"count/SKILL.md": counting, "count/references/a.md": "Lines end with a line feed.",
	"count/scripts/execute.sh": "read -r args; wc -l <notes.txt; touch \"$(dirname \"$0\")/x\" 2>/dev/null && echo it may write; true\n",
}

// TestASkillOfAnImage: the registry is asked once; later runs, a resume and a replay do
// not need it.
func TestASkillOfAnImage(t *testing.T) {
	server, ref := pushedSkill(t, countFiles)
	p := newPlace(t, imageAgent(ref), map[string]string{"notes.txt": "a\nb\n"})
	buildSandboxAndTools(t)
	sandboxed := func(o *RunOptions) { o.AllowUnsandboxed = false }
	out := p.run(t, sandboxed)
	if out.Run.Finished.Reason == string(reason.IsolationUnavailable) {
		t.Skipf("this host gives no sandbox: %s", out.Run.Finished.Message)
	}
	want(t, out, reason.ApprovalRequired)
	if got := text(t, out, 0); !strings.Contains(got, "Call it with a path.") || !strings.Contains(got, "references/a.md") {
		t.Errorf("the skill is %q", got)
	}
	if got := text(t, out, 1); got != "Lines end with a line feed." {
		t.Errorf("its file is %q", got)
	}
	server.Close() // the registry cannot be reached any more

	file := filepath.Join(t.TempDir(), "count.cassette.jsonl")
	out, err := Resume(t.Context(), ResumeOptions{Ref: "@latest", State: p.state, Approve: "all", Version: "test", Record: file})
	if err != nil {
		t.Fatal(err)
	}
	want(t, out, reason.Completed)
	if got := text(t, out, 2); !strings.HasPrefix(got, "2\n[exit code 0") {
		t.Errorf("its script says %q", got)
	}
	want(t, p.run(t, sandboxed, func(o *RunOptions) { o.Approve = "all" }), reason.Completed)
	report, err := Validate(t.Context(), ValidateOptions{Paths: []string{p.manifests}, State: p.state, Strict: true})
	if err != nil || len(report.Findings) > 0 {
		t.Errorf("validate: %v, %v", report, err)
	}
	if err := os.RemoveAll(p.state); err != nil {
		t.Fatal(err)
	}
	if r, err := Replay(t.Context(), ReplayOptions{File: file}); err != nil || r.Divergence != nil {
		t.Errorf("replay: %v, %v", r, err)
	}
}

// TestAnImageThatCannotBeHad: a run does not begin without it, and says what to do.
func TestAnImageThatCannotBeHad(t *testing.T) {
	server, ref := pushedSkill(t, countFiles)
	p := newPlace(t, imageAgent(ref), nil)
	server.Close()
	for what, run := range map[string]func() error{
		"run": func() error { _, err := Run(t.Context(), p.options()); return err },
		"can-i": func() error {
			_, err := decisions.CanI(t.Context(), decisions.AccessOptions{Paths: []string{p.manifests}, Tool: "count"})
			return err
		},
		"replay": func() error {
			_, err := Replay(t.Context(), ReplayOptions{File: "none", Paths: []string{p.manifests}})
			return err
		},
	} {
		if err := run(); err == nil || what == "run" && (reason.Of(err) != reason.WorkspaceUnavailable || !strings.Contains(reason.Hint(err), "crane pull")) {
			t.Errorf("%s: %v; next: %s", what, err, reason.Hint(err))
		}
	}
	if left, _ := filepath.Glob(filepath.Join(p.state, "runs", "*")); len(left) > 0 {
		t.Errorf("runs were begun: %v", left)
	}
	report, err := Validate(t.Context(), ValidateOptions{Paths: []string{p.manifests}, State: p.state})
	if err != nil || report.HasErrors() || len(report.Findings) == 0 || !strings.Contains(report.Findings[0].Message, "fetch 127.0.0.1") {
		t.Errorf("validate without the registry: %v, %v", report, err)
	}
}

// TestAResumeNeedsTheSameImage: the digest is that of the journal, whatever the manifests
// and the store hold now.
func TestAResumeNeedsTheSameImage(t *testing.T) {
	server, ref := pushedSkill(t, countFiles)
	p := newPlace(t, imageAgent(ref), map[string]string{"notes.txt": "a\n"})
	want(t, p.run(t), reason.ApprovalRequired)
	kept, err := filepath.Glob(filepath.Join(p.state, "cache", "skills", "*", "files", "count", "scripts", "execute.sh"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("kept: %v, %v", kept, err)
	}
	resume := func() error {
		_, err := Resume(t.Context(), ResumeOptions{Ref: "@latest", State: p.state, Approve: "all", Version: "test"})
		return err
	}
	write(t, kept[0], "echo another one\n")
	if err := resume(); err == nil || !strings.Contains(err.Error(), "differs from its digest") {
		t.Errorf("a script that was changed: %v", err)
	}
	if err := os.RemoveAll(filepath.Join(p.state, "cache", "skills")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(p.manifests, "all.yaml"), "changed")
	if err := resume(); err != nil {
		t.Errorf("a store that was removed: %v", err)
	}
	server.Close()
}

// TestFoldersOfAnImage: which folder of an image is the skill.
func TestFoldersOfAnImage(t *testing.T) {
	for what, c := range map[string]struct {
		files      map[string]string
		more, want string
	}{
		"root":            {map[string]string{"SKILL.md": counting}, "", ""},
		"the only folder": {map[string]string{"a/b/count/SKILL.md": counting}, "", ""},
		"several":         {map[string]string{"count/SKILL.md": counting, "other/SKILL.md": counting}, "", "name the folder with spec.dir, perhaps count, other"},
		"one of several":  {map[string]string{"count/SKILL.md": counting, "other/SKILL.md": counting}, ", dir: count", ""},
		"another name":    {map[string]string{"count/SKILL.md": counting, "other/SKILL.md": counting}, ", dir: other", `its name is "count", and its folder is called "other"`},
		"outside":         {map[string]string{"count/SKILL.md": counting}, ", dir: ../../..", "is not a folder of the image"},
		"absolute":        {map[string]string{"count/SKILL.md": counting}, ", dir: /etc", "is not a folder of the image"},
		"not there":       {map[string]string{"count/SKILL.md": counting}, ", dir: x", "there is no such folder"},
		"no skill":        {map[string]string{"README.md": "x"}, "", "there is no SKILL.md"},
		"no text":         {map[string]string{"SKILL.md": "\xff\xfe"}, "", "not a text in UTF-8"},
	} {
		t.Run(what, func(t *testing.T) {
			_, ref := pushedSkill(t, c.files)
			quoted, _ := json.Marshal(ref)
			p := newPlace(t, "apiVersion: agentctl.dev/v1alpha1\nkind: Skill\nmetadata: {name: count}\nspec: {image: "+string(quoted)+c.more+"}\n", nil)
			report, err := Validate(t.Context(), ValidateOptions{Paths: []string{p.manifests}, State: p.state})
			if err != nil {
				t.Fatal(err)
			}
			var all strings.Builder
			if err := report.Write(&all, 10); err != nil {
				t.Fatal(err)
			}
			if got := all.String(); !strings.Contains(got, c.want) || c.want == "" && got != "" {
				t.Errorf("got %s, want %q", got, c.want)
			}
		})
	}
}
