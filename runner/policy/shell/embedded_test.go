package shell

import (
	"slices"
	"strings"
	"testing"
)

// TestWhatTheWordsOfOpaqueCommandsNameIsInTheFacts: a program outside the table may start,
// read, write or reach whatever its arguments name.
func TestWhatTheWordsOfOpaqueCommandsNameIsInTheFacts(t *testing.T) {
	for _, c := range []struct {
		script, started, read, written, host string
	}{
		{script: `frob --run-after='/bin/bash -c true'`, started: "bash"},
		{script: `frob -x 'call("/usr/bin/zsh")'`, started: "zsh"},
		{script: `frob -c '!ksh'`, started: "ksh"},
		{script: `frob --hook "python3 -c 1"`, started: "python3"},
		{script: `frob 'begin { popen("dash") }'`, started: "dash"},
		{script: `frob addr:exec:/bin/dash,pty`, started: "dash"},
		{script: `frob -p 'sh -i' 99`, started: "sh"},
		{script: `FROB_PAGER='sh -c x' frob help`, started: "sh"},
		{script: `frob -c /data/in.conf`, read: "/data/in.conf"},
		{script: `frob @/data/in.conf`, read: "/data/in.conf"},
		{script: `frob -f/data/in.conf`, read: "/data/in.conf"},
		{script: `frob --set=x=/data/in.conf,y`, read: "/data/in.conf"},
		{script: `frob 'load("/data/in.conf")'`, read: "/data/in.conf"},
		{script: `frob 'Include ../in.conf'`, read: "../in.conf"},
		{script: `FROB_CONFIG=/data/in.conf frob`, read: "/data/in.conf"},
		{script: `frob --output=/data/out`, written: "/data/out"},
		{script: `frob --dump-file /data/out`, written: "/data/out"},
		{script: `frob -o/data/out`, written: "/data/out"},
		{script: `frob -e 'save >/data/out'`, written: "/data/out"},
		{script: `frob 'f = open("/data/out", "w")'`, written: "/data/out"},
		{script: `frob OPEN:/data/out,append`, written: "/data/out"},
		{script: `frob https://x.invalid/y`, host: "x.invalid"},
		{script: `frob 'get("https://x.invalid/y")'`, host: "x.invalid"},
		{script: `frob who@x.invalid`, host: "x.invalid"},
		{script: `frob -s x.invalid:8080`, host: "x.invalid"},
		{script: `frob 192.0.2.7`, host: "192.0.2.7"},
	} {
		f := Parse(c.script, "")
		if !f.Opaque {
			t.Errorf("%s is not opaque", c.script)
		}
		for _, x := range []struct {
			want string
			got  []string
		}{{c.started, names(f)}, {c.read, f.Reads}, {c.written, f.Writes}, {c.host, f.Hosts}} {
			if x.want != "" && !slices.Contains(x.got, x.want) {
				t.Errorf("%s: no %s in %v", c.script, x.want, x.got)
			}
		}
		if c.host != "" && !f.Network {
			t.Errorf("%s uses the network", c.script)
		}
	}
}

func TestTextsThatOnlySpeakOfAShellStartNone(t *testing.T) {
	for _, script := range []string{
		`frob --message 'describe the bash tool'`, `frob push-all`, `frob crash.log`, `frob --title "sh, a short history"`, `frob -n 1.5 a.bc`,
	} {
		f := Parse(script, "")
		if f.Dynamic || len(f.Commands) != 1 || f.Network {
			t.Errorf("%s: %v dynamic %v %v network %v", script, names(f), f.Dynamic, f.Reasons, f.Network)
		}
	}
}

func TestAFileThatTheScriptWritesMayDecideWhatAnOpaqueCommandDoes(t *testing.T) {
	if f := Parse("echo x >/data/frob.conf; frob -c /data/frob.conf", ""); !f.Dynamic || !strings.Contains(strings.Join(f.Reasons, ";"), "/data/frob.conf") {
		t.Errorf("dynamic %v, %v", f.Dynamic, f.Reasons)
	}
	if f := Parse("frob -c /data/frob.conf; echo x >/data/frob.conf", ""); f.Dynamic {
		t.Errorf("it is written later: %v", f.Reasons)
	}
}

func TestTheFirstWordOfAnOptionsValueMayBeAProgram(t *testing.T) {
	for _, script := range []string{`frob --after='rm -r x'`, `frob --after 'rm -r x'`, `frob --after=/opt/rm`, `frob - EXEC:rm,pty`} {
		if f := Parse(script, ""); !slices.ContainsFunc(f.Maybe, func(c Command) bool { return c.Name == "rm" }) {
			t.Errorf("%s: %v", script, f.Maybe)
		}
	}
}
