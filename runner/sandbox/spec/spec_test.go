package spec

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func boot() *Boot {
	return &Boot{
		Version: Version, Root: "/tmp/x/root", UID: 1000, GID: 1000,
		Profile: Profile{
			Workspace: "/srv/repo", Access: AccessReadWrite, Network: NetworkProxy, Allow: []string{"example.com:443"},
			Mounts: []Mount{{Source: "/opt/tool", Target: "/usr/local/tool", NoExec: true}, {Source: "/opt/data", Writable: true, Optional: true}},
			Home:   "/home/jane", ReadOnly: []string{"/srv/repo/.git/config"}, Masked: []string{"/srv/repo/.env"},
			Limits: Limits{Memory: 1 << 30, Pids: 64, CPU: 500, Files: 100, FileSize: 1 << 20, Scratch: 1 << 20}, Group: "a",
		},
	}
}

func TestABootArrivesWhole(t *testing.T) {
	b, err := Encode(boot())
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeBoot(b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(boot(), got); diff != "" {
		t.Error(diff)
	}
}

func TestAWrongBootIsRefused(t *testing.T) {
	for want, spoil := range map[string]func(*Boot){
		"speaks version 2":          func(b *Boot) { b.Version = 2 },
		"root is the root":          func(b *Boot) { b.Root = "/" },
		"the user is negative":      func(b *Boot) { b.UID = -1 },
		`access "Full"`:             func(b *Boot) { b.Profile.Access = "Full" },
		`network "Bridge"`:          func(b *Boot) { b.Profile.Network = "Bridge" },
		`workspace "repo" is not`:   func(b *Boot) { b.Profile.Workspace = "repo" },
		`home "/a/../b" is not`:     func(b *Boot) { b.Profile.Home = "/a/../b" },
		`mount source "/a/" is not`: func(b *Boot) { b.Profile.Mounts[0].Source = "/a/" },
		`mount target "a" is not`:   func(b *Boot) { b.Profile.Mounts[0].Target = "a" },
		"readOnly is the root":      func(b *Boot) { b.Profile.ReadOnly = []string{"/"} },
		"NUL byte":                  func(b *Boot) { b.Profile.Masked = []string{"/a\x00"} },
		"not UTF-8":                 func(b *Boot) { b.Profile.Masked = []string{"/a\xff"} },
		"longer than 4095 bytes":    func(b *Boot) { b.Profile.Masked = []string{"/" + strings.Repeat("a", 5000)} },
		"more than 4096 entries":    func(b *Boot) { b.Profile.Masked = make([]string, 5000) },
		"limit memory is negative":  func(b *Boot) { b.Profile.Limits.Memory = -1 },
	} {
		m := boot()
		spoil(m)
		if _, err := Encode(m); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("encode: %v, want %q", err, want)
		}
		b, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := DecodeBoot(b); err == nil || !(strings.Contains(err.Error(), want) || want == "not UTF-8" || want == "longer than 4095 bytes" || want == "more than 4096 entries") {
			if want != "not UTF-8" { // json.Marshal has replaced it
				t.Errorf("decode: %v, want %q", err, want)
			}
		}
	}
}

func TestAWrongMessageIsRefused(t *testing.T) {
	for want, text := range map[string]string{
		"unknown field":           `{"id":1,"op":"sweep","program":1,"force":true}`,
		"something follows":       `{"id":1,"op":"sweep","program":1} {}`,
		"unexpected EOF":          `{"id":1`,
		"it has no id":            `{"op":"sweep","program":1}`,
		`no operation "exec"`:     `{"id":1,"op":"exec"}`,
		"names no program":        `{"id":1,"op":"sweep"}`,
		"no signal 65":            `{"id":1,"op":"signal","program":1,"signal":65}`,
		"no signal 0":             `{"id":1,"op":"signal","program":1}`,
		"the command is empty":    `{"id":1,"op":"start","path":"/bin/true","dir":"/"}`,
		"is not absolute":         `{"id":1,"op":"start","path":"true","dir":"/","argv":["true"]}`,
		"folder is not absolute":  `{"id":1,"op":"start","path":"/bin/true","dir":"x","argv":["true"]}`,
		"NUL byte in the command": `{"id":1,"op":"start","path":"/bin/true","dir":"/","argv":["true"],"env":["A=\u0000"]}`,
		`path "x" is not`:         `{"id":1,"op":"protect","masked":["x"]}`,
		"message is too large":    `{"id":1,"op":"` + strings.Repeat("x", MaxMessage) + `"}`,
	} {
		if m, err := DecodeRequest([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %+v, %v, want %q", text, m, err, want)
		}
	}
	if _, err := DecodeReply([]byte(`{"id":1,"x":2}`)); err == nil {
		t.Error("a reply with an unknown field was read")
	}
	if _, err := Encode(&Request{ID: 1, Op: OpStart, Path: "/x", Dir: "/", Argv: []string{strings.Repeat("x", MaxMessage)}}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("error = %v", err)
	}
}

func fork() *Fork {
	return &Fork{Version: Version, Network: NetworkNone, Users: []Range{{First: 0, Count: 10}}, Groups: []Range{{First: 1000, Count: 1}}}
}

func TestAWrongForkIsRefused(t *testing.T) {
	for want, spoil := range map[string]func(*Fork){
		"speaks version 2":   func(f *Fork) { f.Version = 2 },
		`network "Bridge"`:   func(f *Fork) { f.Network = "Bridge" },
		"0 ranges":           func(f *Fork) { f.Users = nil },
		"341 ranges":         func(f *Fork) { f.Groups = make([]Range, 341) },
		"empty or negative":  func(f *Fork) { f.Users[0].First = -1 },
		"is empty or negati": func(f *Fork) { f.Groups[0].Count = 0 },
	} {
		m := fork()
		spoil(m)
		b, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := DecodeFork(b); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("decode: %v, want %q", err, want)
		}
	}
	b, err := Encode(fork())
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeFork(b)
	if diff := cmp.Diff(fork(), got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	if _, err := DecodeFork(append(b, '{')); err == nil {
		t.Error("what follows the namespaces was overlooked")
	}
}

func TestAMountIsSeenAtItsTarget(t *testing.T) {
	if got := (&Mount{Source: "/a"}).At() + (&Mount{Source: "/a", Target: "/b"}).At(); got != "/a/b" {
		t.Errorf("targets = %s", got)
	}
}

func FuzzSpec(f *testing.F) {
	b, err := Encode(boot())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	if b, err = Encode(fork()); err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	for _, s := range []string{
		`{"id":1,"op":"start","path":"/bin/true","argv":["true"],"dir":"/","env":["A=1"],"checked":true}`,
		`{"id":2,"op":"signal","program":1,"signal":15}`, `{"id":3,"op":"protect","readOnly":["/a"],"masked":["/b"]}`,
		`{"id":1,"exited":true,"code":-1,"signal":9}`, `{}`, `null`, `[]`, "",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, err := DecodeBoot(b); err == nil {
			again(t, m, DecodeBoot)
			for _, p := range append(append([]string{m.Root}, m.Profile.ReadOnly...), m.Profile.Masked...) {
				if !strings.HasPrefix(p, "/") || p == "/" || strings.Contains(p+"/", "/../") {
					t.Errorf("path %q was taken", p)
				}
			}
		}
		if m, err := DecodeRequest(b); err == nil {
			if m.ID == 0 || m.Op == OpStart && len(m.Argv) == 0 {
				t.Errorf("request %+v was taken", m)
			}
			again(t, m, DecodeRequest)
		}
		if m, err := DecodeFork(b); err == nil {
			for _, r := range append(append([]Range{}, m.Users...), m.Groups...) {
				if r.First < 0 || r.Count < 1 {
					t.Errorf("range %+v was taken", r)
				}
			}
			again(t, m, DecodeFork)
		}
		if m, err := DecodeReply(b); err == nil {
			again(t, m, DecodeReply)
		}
	})
}

// again checks that a decoded message can be encoded and decoded again,
// unchanged.
func again[M interface{ Check() error }](t *testing.T, m M, decode func([]byte) (M, error)) {
	t.Helper()
	b, err := Encode(m)
	if errors.Is(err, ErrTooLarge) { // escapes take more room than what they stand for
		return
	}
	if err != nil {
		t.Fatalf("%+v: %v", m, err)
	}
	got, err := decode(b)
	if err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	one, _ := json.Marshal(m)
	two, _ := json.Marshal(got)
	if diff := cmp.Diff(string(one), string(two)); diff != "" {
		t.Error(diff)
	}
}
