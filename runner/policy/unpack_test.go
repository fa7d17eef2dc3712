package policy

import (
	"os/exec"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/message"
)

// What an archive, a patch or git itself writes is judged as the files that it writes.
func TestFilesThatNoArgumentNames(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git to make a repository with")
	}
	const policy = "permissions: [{permission: '*', action: allow}, {permission: edit, pattern: LICENSE, action: deny}, {permission: edit, pattern: 'protected/*', action: deny}]\n" +
		"rules: [{name: inside, when: \"paths.exists(p, !p.inWorkspace)\", action: deny}]"
	for name, c := range map[string]struct {
		reason, setup, script string
		want                  message.Action
	}{
		"tar":                {"it holds other files", "mkdir t && echo > t/a && tar cf a.tar t", "tar xf a.tar", message.Allow},
		"tar of a denied":    {"", "mkdir -p t/protected && echo > t/protected/f && tar cf a.tar -C t .", "tar xf a.tar", message.Deny},
		"compressed":         {"", "mkdir -p t/protected && echo > t/protected/f && tar czf a.tgz -C t .", "tar xzf a.tgz", message.Deny},
		"by strip":           {"", "mkdir -p t/protected && echo > t/protected/f && tar cf a.tar t", "tar xf a.tar --strip-components=1", message.Deny},
		"not by strip":       {"the name is another one", "mkdir -p t/protected && echo > t/protected/f && tar cf a.tar t", "tar xf a.tar --strip-components=2", message.Allow},
		"elsewhere":          {"it is written in another folder", "mkdir -p out t/protected && echo > t/protected/f && tar cf a.tar -C t protected", "tar xf a.tar -C out", message.Allow},
		"transformed":        {"the options change the names", "echo > a && tar cf a.tar a", "tar xf a.tar --xform=s/a/LICENSE/", message.Ask},
		"an unknown archive": {"it is not there yet", "true", "tar xf b.tar", message.Ask},
		"damaged":            {"", "echo > a.tar", "tar xf a.tar", message.Ask},
		"through a link":     {"it leads out", "ln -s /tmp l && mkdir t t/l && echo > t/l/f && tar cf a.tar -C t l/f", "tar xf a.tar", message.Deny},
		"a link in it":       {"another command may follow it", "ln -s .. l && tar cf a.tar l && rm l", "tar xf a.tar && cat l/private.txt", message.Ask},
		"a link alone":       {"nothing follows it", "ln -s .. l && tar cf a.tar l && rm l", "tar xf a.tar", message.Allow},
		"no link in it":      {"", "mkdir t && echo > t/a && tar cf a.tar t", "tar xf a.tar && cat t/a", message.Allow},
		"made before":        {"another archive", "mkdir t && echo > t/a && tar cf a.tar t", "tar cf a.tar LICENSE; tar xf a.tar", message.Ask},
		"zip":                {"", "python3 -m zipfile -c a.zip a", "unzip -q a.zip", message.Allow},
		"zip of a denied":    {"", "python3 -m zipfile -c a.zip LICENSE", "unzip -oq a", message.Deny},
		"some of a zip":      {"its operands are patterns", "python3 -m zipfile -c a.zip a", "unzip -q a.zip 'b*'", message.Ask},
		"git apply":          {"", "echo 2 > LICENSE && git diff > p && git checkout -q . && sed -i s/LICENSE/a/g p", "git apply p", message.Allow},
		"to a denied file":   {"", "echo 2 > LICENSE && git diff > p && git checkout -q .", "git apply p", message.Deny},
		"patch":              {"", "echo 2 > LICENSE && git diff > p && git checkout -q .", "patch -p1 -i p", message.Deny},
		"patch by its input": {"the names are not looked for there", "echo 2 > a && git diff > p && git checkout -q .", "patch -p1 < p", message.Ask},
		"a renaming patch":   {"the names are in other lines", "git mv LICENSE b && git diff --cached > p && git reset -q --hard", "git apply p", message.Ask},
		"a removing patch":   {"", "rm LICENSE && git diff > p && git checkout -q .", "git apply p", message.Deny},
		"another strip":      {"", "echo 2 > LICENSE && git diff > p && git checkout -q . && sed -i 's#a/#a/x/#;s#b/#b/x/#' p", "git apply -p2 p", message.Deny},
		"git stash":          {"it takes back all that has changed", "echo 2 > LICENSE", "git stash -q", message.Ask},
		"git checkout":       {"", "git branch b", "git checkout b", message.Ask},
		"git of another":     {"no file of it may not be written", "mkdir r && cd r && git init -q && echo > x && git add x", "git -C r stash -q", message.Allow},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			cmd := exec.CommandContext(t.Context(), "bash", "-ec", "git init -q; git config user.name a; git config user.email a@b; mkdir protected; for f in a LICENSE protected/f; do echo 1 > $f; done; git add -A; git commit -qm 1\n"+c.setup)
			cmd.Dir = root
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			p, problems := Compile(parse(t, policy), testTools())
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			e := NewEngine([]*Compiled{p}, Context{Workspace: Workspace{Root: root}, Tools: testTools()})
			d := decide(t, e, bash(c.script))
			if d.Action != c.want {
				t.Errorf("%s: %s by %s (%s), want %s", c.reason, d.Action, d.Rule, d.Message, c.want)
			}
			if name == "git stash" && !strings.Contains(d.Message, "LICENSE") {
				t.Errorf("the question does not name the file: %s", d.Message)
			}
		})
	}
}

func FuzzNamesInPacked(f *testing.F) {
	for _, s := range []string{"--- a/x\n+++ b/x\n", "PK\x03\x04", "\x1f\x8b\x08", "BZh9", "--- a\n+++ /dev/null\n", "new file mode 120000\n--- /dev/null\n+++ b/l\n"} {
		f.Add([]byte(s), 1)
	}
	f.Fuzz(func(t *testing.T, b []byte, strip int) {
		p, err := namesIn(b, strip)
		for _, n := range p.names {
			if err == nil && strings.HasPrefix(n, "/") {
				t.Errorf("an absolute name: %q", n)
			}
		}
	})
}
