package shell

import (
	"strings"
	"testing"
)

func TestGitIsReadFromTheTable(t *testing.T) {
	for _, c := range []struct {
		script, want string
		writes       string
	}{
		{"git status -sb", "exact", ""},
		{"git --no-pager -C sub log --one --no-merg -20", "exact", ""},
		{"git log --frobnicate", "opaque", ""},
		{"git unheardof", "opaque", ""},
		{"git log --output f", "exact", "f"},
		{"git log --ext-d", "dynamic", ""},
		{"git diff --no-ext-diff -U5 a b", "exact", ""},
		{"git commit -am x", "exact", ""},
		{"git commit", "opaque", ""},
		{"git commit --amend --no-edit", "exact", ""},
		{"git commit -qF msg", "exact", ""},
		{"git commit -S -m x", "dynamic", ""},
		{"git rm -rf --cach d", "exact", "d"},
		{"git rm '*.txt'", "exact", "."},
		{"git reset --soft HEAD~1", "exact", ""},
		{"git reset --har", "exact", "."},
		{"git stash list", "exact", ""},
		{"git stash pop", "exact", "."},
		{"git config --get user.name", "exact", ""},
		{"git config user.name", "exact", ""},
		{"git config user.name x", "opaque", ".git/config"},
		{"git config --global --unset core.pager", "opaque", ".git/config ~/.gitconfig"},
		{"git push -q origin main", "exact", ""},
		{"git push ../other main", "exact", "../other"},
		{"git push --exe=x", "dynamic", ""},
		{"git clone -q https://example.com/a/b.git", "exact", "b"},
		{"git clone host:b c", "exact", "c"},
		{"git remote add x ext::y", "dynamic", ""},
		{"echo x >.git/hooks/pre-commit; git commit -m x", "opaque", ".git/hooks/pre-commit"},
		{"git format-patch -1", "exact", "."},
		{"git format-patch -1 --stdout", "exact", ""},
		{"git init --temp=x", "dynamic", ""},
	} {
		f := Parse(c.script, "")
		got := "exact"
		switch {
		case f.Dynamic:
			got = "dynamic"
		case f.Opaque:
			got = "opaque"
		}
		if got != c.want || strings.Join(sorted(f.Writes), " ") != c.writes {
			t.Errorf("%s: %s, writes %v; commands %v, %v", c.script, got, f.Writes, f.Commands, f.Reasons)
		}
	}
}
