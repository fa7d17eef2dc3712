package policy

import (
	"testing"

	"agentctl.dev/agentctl/api/message"
)

func TestHostsThatAreNumbers(t *testing.T) {
	for host, want := range map[string]string{
		"192.0.2.1": "192.0.2.1", "0xC0000201": "192.0.2.1", "3221225985": "192.0.2.1", "0300.0.0x2.1": "192.0.2.1", "192.513": "192.0.2.1", "192.0.513": "192.0.2.1", "192.0.2.1.": "192.0.2.1",
		"::ffff:192.0.2.1": "192.0.2.1", "::ffff:c000:201": "192.0.2.1", "2001:db8::1": "2001:db8::1",
		"192.0.2.256": "192.0.2.256", "256.1": "256.1", "1.2.3.4.5": "1.2.3.4.5", "4294967296": "4294967296", "0b1": "0b1", "1_0": "1_0", "0x": "0x", "": "", "a.b": "a.b", "0o17": "0o17", "09": "09",
	} {
		if got := canonicalHost(host); got != want {
			t.Errorf("%q is %q, not %q", host, got, want)
		}
	}
}

// A rule about a host holds for it in every spelling.
func TestARuleAboutAHostHoldsForItsNumber(t *testing.T) {
	e := engine(t, "rules: [{name: no, when: \"'192.0.2.1' in net.named\", action: deny}, {name: ok, match: {tools: [bash]}, action: allow}]")
	for _, script := range []string{"curl http://192.0.2.1/x", "curl http://0xc0000201/x", "curl 'http://[::ffff:192.0.2.1]/'", "nc 3221225985 80", "curl http://0300.0.2.1"} {
		if d := decide(t, e, bash(script)); d.Action != message.Deny {
			t.Errorf("%s: %s by %s", script, d.Action, d.Rule)
		}
	}
	if d := decide(t, e, bash("curl http://192.0.2.2/x")); d.Action != message.Allow {
		t.Errorf("another host: %s by %s", d.Action, d.Rule)
	}
}
