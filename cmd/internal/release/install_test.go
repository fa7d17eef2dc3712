package main

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// mirror serves a copy of the release, of which a test may change files.
type mirror struct {
	url, dir, authority string
}

func newMirror(t *testing.T) *mirror {
	t.Helper()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("install.sh downloads with curl here, which is missing")
	}
	m := &mirror{dir: filepath.Join(t.TempDir(), version), authority: filepath.Join(t.TempDir(), "authority.pem")}
	if err := os.CopyFS(m.dir, os.DirFS(released(t).dir)); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewTLSServer(http.FileServer(http.Dir(filepath.Dir(m.dir))))
	t.Cleanup(server.Close)
	m.url = server.URL
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(m.authority, cert, 0o600); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *mirror) archive() string {
	return "agentctl_" + version + "_linux_" + runtime.GOARCH + ".tar.gz"
}

// install runs the installer of the release and returns what it prints and where it installs.
func (m *mirror) install(t *testing.T, env ...string) (out, prefix string, err error) {
	t.Helper()
	prefix = filepath.Join(t.TempDir(), "prefix")
	temp := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "sh", filepath.Join(released(t).dir, "install.sh"))
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "TMPDIR=" + temp, "CURL_CA_BUNDLE=" + m.authority, "no_proxy=127.0.0.1",
		"AGENTCTL_PREFIX=" + prefix, "AGENTCTL_BASE_URL=" + m.url,
	}, env...)
	text, err := cmd.CombinedOutput()
	if left, _ := os.ReadDir(temp); len(left) > 0 {
		t.Errorf("%v is left behind in TMPDIR", left)
	}
	return string(text), prefix, err
}

func TestInstallerInstallsFromAServer(t *testing.T) {
	m := newMirror(t)
	sum, err := digest(filepath.Join(m.dir, m.archive()))
	if err != nil {
		t.Fatal(err)
	}
	for name, env := range map[string][]string{"latest": nil, "pinned": {"AGENTCTL_VERSION=" + version, "AGENTCTL_SHA256=" + sum}, "slash": {"AGENTCTL_BASE_URL=" + m.url + "/"}} {
		t.Run(name, func(t *testing.T) {
			out, prefix, err := m.install(t, env...)
			if err != nil || !strings.Contains(out, "installed agentctl v0.9.1 in "+prefix) || !strings.Contains(out, "next: export PATH=") {
				t.Fatalf("%v: %s", err, out)
			}
			info, err := os.Stat(filepath.Join(prefix, "libexec", "agentctl", "agentctl-entry"))
			if err != nil || info.Mode().Perm() != 0o755 {
				t.Errorf("%v: %v", info, err)
			}
		})
	}
}

func TestInstallerReplacesAProgramThatRuns(t *testing.T) {
	m := newMirror(t)
	prefix := t.TempDir()
	program := filepath.Join(prefix, "libexec", "agentctl", "agentctl-entry")
	if err := os.MkdirAll(filepath.Dir(program), 0o755); err != nil {
		t.Fatal(err)
	}
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	text := read(t, sleep)
	if err := os.WriteFile(program, text, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "60")
	cmd.Args[0] = "sleep"
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out, _, err := m.install(t, "AGENTCTL_PREFIX="+prefix)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if err != nil || len(read(t, program)) == len(text) {
		t.Errorf("%v: %s", err, out)
	}
}

func TestInstallerRefuses(t *testing.T) {
	m := newMirror(t)
	archive := filepath.Join(m.dir, m.archive())
	whole := read(t, archive)
	plain := httptest.NewServer(http.FileServer(http.Dir(filepath.Dir(m.dir))))
	t.Cleanup(plain.Close)
	turn := httptest.NewUnstartedServer(http.RedirectHandler(plain.URL, http.StatusFound))
	turn.StartTLS()
	t.Cleanup(turn.Close)
	flip := func(t *testing.T) {
		t.Helper()
		changed := append([]byte{}, whole...)
		changed[len(changed)/2] ^= 1
		if err := os.WriteFile(archive, changed, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		reason string
		before func(*testing.T)
		env    []string
		want   string
	}{
		"a flipped bit":        {"the archive is not the one of the release", flip, nil, "nothing was installed"},
		"a truncated archive":  {"the download broke off", func(t *testing.T) { t.Helper(); _ = os.WriteFile(archive, whole[:len(whole)/2], 0o600) }, nil, "nothing was installed"},
		"another checksum":     {"the mirror has exchanged both files", nil, []string{"AGENTCTL_SHA256=" + strings.Repeat("0", 64)}, "AGENTCTL_SHA256 is 000"},
		"no checksum":          {"it would match any file", nil, []string{"AGENTCTL_SHA256=ABC"}, "not a checksum"},
		"a missing version":    {"there is none", nil, []string{"AGENTCTL_VERSION=v8.0.0"}, "could not download"},
		"a version as path":    {"it becomes part of an address", nil, []string{"AGENTCTL_VERSION=v0/../../x"}, "characters that no version has"},
		"no v":                 {"a version has one", nil, []string{"AGENTCTL_VERSION=latest"}, "write it as in v0.1.0"},
		"http":                 {"anybody on the way can exchange both", nil, []string{"AGENTCTL_BASE_URL=" + plain.URL}, "set AGENTCTL_SHA256"},
		"another protocol":     {"nobody asked for it", nil, []string{"AGENTCTL_BASE_URL=ftp://example.com"}, "begin it with https://"},
		"an unknown authority": {"the server is not who it says", nil, []string{"CURL_CA_BUNDLE=/dev/null"}, "could not download"},
		"a turn to http":       {"the address was https", nil, []string{"AGENTCTL_BASE_URL=" + turn.URL}, "could not download"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.before != nil {
				c.before(t)
				defer func() { _ = os.WriteFile(archive, whole, 0o600) }()
			}
			out, prefix, err := m.install(t, c.env...)
			if err == nil || !strings.Contains(out, c.want) {
				t.Errorf("%s: error %v, want %q, printed:\n%s", c.reason, err, c.want, out)
			}
			if _, err := os.Stat(prefix); err == nil {
				t.Error("something was installed")
			}
		})
	}
}

// A script that breaks off in the download does nothing.
func TestHalfAnInstallerDoesNothing(t *testing.T) {
	m := newMirror(t)
	script := strings.TrimSpace(installer)
	half := filepath.Join(t.TempDir(), "install.sh")
	if err := os.WriteFile(half, []byte(strings.TrimSuffix(script, "main")), 0o600); err != nil {
		t.Fatal(err)
	}
	prefix := filepath.Join(t.TempDir(), "prefix")
	cmd := exec.CommandContext(t.Context(), "sh", half)
	cmd.Env = append(os.Environ(), "AGENTCTL_PREFIX="+prefix, "AGENTCTL_BASE_URL="+m.url)
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v: %s", err, out)
	}
	if _, err := os.Stat(prefix); err == nil {
		t.Error("something was installed")
	}
}
