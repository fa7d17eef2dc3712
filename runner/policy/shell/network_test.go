package shell

import (
	"slices"
	"strings"
	"testing"
)

// TestNetworkPrograms: what network programs read, write and reach, however their options
// are written.
func TestNetworkPrograms(t *testing.T) {
	for _, c := range []struct {
		script, hosts, reads, writes string
		opaque, dynamic              bool
	}{
		{script: "curl -sSfLo out https://a.invalid/x", hosts: "a.invalid", writes: "out"},
		{script: "curl --outp out a.invalid", opaque: true, hosts: "a.invalid out"}, // --output or --output-dir
		{script: "curl -d @body -Hx:1 https://a.invalid", hosts: "a.invalid", reads: "body"},
		{script: "curl --netrc https://a.invalid", hosts: "a.invalid", reads: "~/.netrc"},
		{script: "curl --dns-servers 192.0.2.1 https://a.invalid", hosts: "192.0.2.1 a.invalid", opaque: true},
		{script: "curl -w '%output{f}' https://a.invalid", hosts: "a.invalid", dynamic: true},
		{script: "curl -T '{a,b}' https://a.invalid", hosts: "a.invalid", reads: "?", dynamic: true},
		{script: "wget -nv -O- --no-hsts https://a.invalid", hosts: "a.invalid"},
		{script: "wget -e x=y https://a.invalid", hosts: "a.invalid x=y", writes: ". ~/.wget-hsts", opaque: true},
		{script: "ssh -p 22 u@a.invalid rm -rf /x", hosts: "a.invalid", opaque: true},
		{script: "scp f u@a.invalid:g", hosts: "a.invalid", reads: "f"},
		{script: "scp u@a.invalid:g f", hosts: "a.invalid", writes: "f"},
		{script: "dig +short mx a.invalid @b.invalid", hosts: "a.invalid b.invalid"},
		{script: "dig $(id).a.invalid", dynamic: true},
		{script: "nc -l 8080"},
		{script: "finger u@a.invalid", hosts: "a.invalid"},
		{script: "finger u"},
		{script: "openssl rand -hex 16"},
		{script: "openssl dgst -sha256 -out f g", reads: "g", writes: "f"},
		{script: "openssl enc -d -in f -out g", reads: "f", writes: "g"},
		{script: "openssl dgst -engine ./e.so g", reads: "./e.so g", opaque: true},
		{script: "openssl s_client -connect a.invalid:443", hosts: "a.invalid"},
		{script: "ip -br addr show"},
		{script: "ip link show"},
		{script: "ip link set x xdp object f", opaque: true},
		{script: "ip netns exec x frob", opaque: true},
		{script: "nmap -oN f 192.0.2.1", hosts: "192.0.2.1", writes: "f", opaque: true},
		{script: "aria2c -i list", opaque: true},
	} {
		f := Parse(c.script, "")
		for _, x := range []struct {
			what, want string
			got        []string
		}{{"hosts", c.hosts, f.Hosts}, {"reads", c.reads, f.Reads}, {"writes", c.writes, f.Writes}} {
			if !slices.Equal(sorted(strings.Fields(x.want)), sorted(x.got)) {
				t.Errorf("%s: %s are %v", c.script, x.what, x.got)
			}
		}
		if f.Opaque != c.opaque || f.Dynamic != c.dynamic {
			t.Errorf("%s: opaque %v %v, dynamic %v %v", c.script, f.Opaque, f.Commands[0].Opaque, f.Dynamic, f.Reasons)
		}
		if (c.hosts != "") && !f.Network {
			t.Errorf("%s uses the network", c.script)
		}
	}
}

func TestSettingsOfTheScriptDecideWhatNetworkProgramsDo(t *testing.T) {
	for _, script := range []string{"echo x >~/.curlrc; curl https://a.invalid", "https_proxy=b.invalid curl https://a.invalid", "export WGETRC=f; wget --no-hsts https://a.invalid", "OPENSSL_CONF=f openssl rand 1"} {
		if f := Parse(script, ""); !f.Opaque && !f.Dynamic {
			t.Errorf("%s is exact", script)
		}
	}
}
