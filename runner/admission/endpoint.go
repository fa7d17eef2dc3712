package admission

import (
	"fmt"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/manifest"
	"agentctl.dev/agentctl/runner/sandbox/egress"
	"agentctl.dev/agentctl/runner/tool/builtin"
)

// endpoint checks that a Tool names the server of a shipped tool, and lets it reach that
// server.
func (a *admitter) endpoint(d *manifest.Document, t *v1alpha1.Tool, name, variable string) {
	if d.Faulty("spec.env") || d.Faulty("spec.network") {
		return
	}
	server := builtin.Server(&t.Spec)
	if server == nil {
		a.add(d.KeyErrorf("spec.env", "the built-in tool %s needs the address of its server as value of %s", name, variable).
			With(fmt.Sprintf("write env: [{name: %s, value: \"https://search.example.org/search\"}]; the address holds no credentials, and http only with a port other than 80", variable)))
		return
	}
	target, err := egress.ParseTarget(server.Host, 0)
	if err != nil {
		a.add(d.KeyErrorf("spec.env", "%s: %q %s", variable, clip(server.Host), err))
		return
	}
	allow, _ := egress.ParseAllow(t.Spec.Network.Allow) // what is wrong with an entry is reported there
	if _, ok := allow.Find(target); !ok && t.Spec.Network.Mode == v1alpha1.NetworkProxy {
		a.add(d.KeyErrorf("spec.network", "the server of %s, %s, cannot be reached: it is not listed", name, target).
			With(fmt.Sprintf("write network: {mode: Proxy, allow: [%q]}", target.String())))
	}
}
