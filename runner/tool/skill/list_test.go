package skill

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func many(n, words int) []Entry {
	var all []Entry
	for i := range n {
		all = append(all, Entry{Name: fmt.Sprintf("skill-%03d", i), Description: strings.TrimSpace(strings.Repeat("words of größe ", words))})
	}
	return all
}

func TestTheListHasALimit(t *testing.T) {
	long := many(200, 30)
	for i := range long {
		long[i].Name = strings.Repeat("n", 60) + fmt.Sprint(1000+i)
	}
	for name, c := range map[string]struct {
		skills []Entry
		want   string
	}{
		"few": {many(3, 2), "- skill-002: words of größe words of größe\n</skills>\n"}, "200": {many(200, 30), "- skill-199: "}, "1000": {many(1000, 30), " more\n"},
		"long names": {long, " more\n"},
		"one long":   {append(many(100, 1), Entry{Name: "z", Description: strings.Repeat("x", 3000)}), "- skill-099: words of größe\n- z: xxx"},
	} {
		text := List(c.skills)
		if len(text) > MaxList || !utf8.ValidString(text) || !strings.Contains(text, c.want) || !strings.HasSuffix(text, "</skills>\n") {
			t.Errorf("%s: %d bytes:\n%s", name, len(text), text)
		}
		shuffled := slices.Clone(c.skills)
		slices.Reverse(shuffled)
		if List(shuffled) != text {
			t.Errorf("%s: the order of the skills changes the list", name)
		}
	}
	if List(nil) != "" {
		t.Error("a list of nothing")
	}
}

func TestSkillsOfAWorkspaceAreFound(t *testing.T) {
	top := t.TempDir()
	work := filepath.Join(top, "work")
	put := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(top, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(top, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const text = "---\nname: liar\ndescription: Does \x1b[31mit.\n---\nDo."
	head := strings.ReplaceAll(text, "\x1b[31m", "")
	put("work/.agents/skills/b/SKILL.md", head)
	put("work/.agents/skills/group/a/SKILL.md", head)
	put("work/.agents/skills/group/a/nested/SKILL.md", head)
	put("work/.agents/skills/other/b/SKILL.md", head)
	put("work/.agents/skills/no name/SKILL.md", head)
	put("work/.agents/skills/mute/SKILL.md", "text")
	put("work/.agents/skills/huge/SKILL.md", head+strings.Repeat("x", 1<<20))
	put("work/real/linked/SKILL.md", head)
	put("outside/stolen/SKILL.md", head)
	put("outside/key", "CANARY")
	for name, to := range map[string]string{
		"linked": "../../real/linked", "stolen": "../../../outside/stolen", "abroad": filepath.Join(top, "outside/stolen"), "loop": "loop",
	} {
		if err := os.Symlink(to, filepath.Join(work, ".agents/skills", name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(work, ".agents/skills/outer"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../../../../outside/stolen/SKILL.md", filepath.Join(work, ".agents/skills/outer/SKILL.md")); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(work, ".agents/skills/shared"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../../../real/linked/SKILL.md", filepath.Join(work, ".agents/skills/shared/SKILL.md")); err != nil {
		t.Fatal(err)
	}
	found, notes := Find(work, []string{".agents/skills", "nowhere", "../outside", "/etc"})
	var names []string
	for _, e := range found {
		names = append(names, e.Name+" "+e.Workspace)
		if e.Description != "Does it." || e.Digest == "" {
			t.Errorf("%+v", e)
		}
	}
	if got := strings.Join(names, ", "); got != "b .agents/skills/b, a .agents/skills/group/a" {
		t.Errorf("found %s", got)
	}
	all := strings.Join(notes, "\n")
	for _, want := range []string{"other/b is left out: .agents/skills/b has the same name", "no name", "mute is left out: SKILL.md has no description", "huge is left out", "linked is left out: it is a link", "stolen is left out", "abroad is left out", "loop is left out", "outer is left out", "shared is left out: SKILL.md: it is a link"} {
		if !strings.Contains(all, want) {
			t.Errorf("not told: %s in\n%s", want, all)
		}
	}

	// What a run does to the folder later leads nowhere.
	b := found[0]
	if _, f, err := b.Load(); err != nil {
		t.Fatal(err)
	} else if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(b.Dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(top, "outside/stolen"), b.Dir); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.Load(); err == nil {
		t.Error("a folder outside of the workspace was opened")
	}
	put("work/.agents/skills/group/a/SKILL.md", head+" And more.")
	if _, _, err := found[1].Load(); err == nil || !strings.Contains(err.Error(), "changed") {
		t.Errorf("another text was loaded: %v", err)
	}
}

func TestFilesOfASkillStayInItsFolder(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "s")
	for name, text := range map[string]string{
		"s/SKILL.md": "x", "s/references/a.md": "A", "s/.git/config": "x", "s/node_modules/x/y": "x", "s/scripts/execute.py": "x", "s/scripts/execute.schema.json": "{}", "s/font.ttf": "\x00\x01", "key": "CANARY",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(top, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(top, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"out": "../key", "abs": filepath.Join(top, "key"), "up": ".."} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	f, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	files, more := f.Files()
	if got := fmt.Sprint(files, more); got != "[{font.ttf 2} {references/a.md 1} {scripts/execute.py 1} {scripts/execute.schema.json 2}] false" {
		t.Error(got)
	}
	if text, err := f.Text("references/a.md"); err != nil || text != "A" {
		t.Errorf("%q, %v", text, err)
	}
	for _, name := range []string{"../key", "out", "abs", "up/key", "up/s/../key", "/etc/passwd", "references", "font.ttf", "nothing", "SKILL.md/x", "references/../../key"} {
		if text, err := f.Text(name); err == nil {
			t.Errorf("%s is read: %q", name, text)
		}
	}
	if script, err := f.Script(); err != nil || script != "scripts/execute.py" {
		t.Errorf("%q, %v", script, err)
	}
	if got := Command(dir, "scripts/execute.py"); got[0] != "python3" || got[1] != dir+"/scripts/execute.py" {
		t.Error(got)
	}
	if err := os.Remove(filepath.Join(dir, "scripts/execute.py")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../../key", filepath.Join(dir, "scripts/execute.sh")); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Script(); err == nil || !strings.Contains(err.Error(), "link") {
		t.Errorf("a script that is a link: %v", err)
	}
}

// BenchmarkFind200 is the start of a run with 200 skills: 10 ms at most.
func BenchmarkFind200(b *testing.B) {
	work := b.TempDir()
	for i := range 200 {
		dir := filepath.Join(work, ".agents/skills", fmt.Sprintf("skill-%03d", i))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			b.Fatal(err)
		}
		text := fmt.Sprintf("---\nname: skill-%03d\ndescription: %s\nlicense: MIT\nmetadata:\n  version: \"1.0\"\n---\n%s", i, strings.Repeat("Use it when asked. ", 15), strings.Repeat("line of text\n", 400))
		if err := os.WriteFile(filepath.Join(dir, File), []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		found, _ := Find(work, []string{".agents/skills"})
		if text := List(found); len(found) != 200 || len(text) > MaxList {
			b.Fatal(len(found), len(text))
		}
	}
}
