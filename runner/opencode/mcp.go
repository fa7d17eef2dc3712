package opencode

import (
	"net/url"
	"strings"
)

// server is an MCP server. OpenCode calls its functions prefix_function, agentctl
// name_function.
type server struct{ prefix, name string }

// mcp writes a Tool for each MCP server.
func (c *conversion) mcp() {
	all := c.root.get("mcp")
	if all == nil {
		return
	}
	if all.kind != object {
		c.leave("/mcp", "is no object")
		return
	}
	var objects []map[string]any
	var taken []string
	for i := range all.members {
		m := &all.members[i]
		at := "/mcp/" + escape(m.key)
		if on := m.get("enabled"); on != nil && on.kind == boolean && !on.truth {
			c.leave(at, "is not enabled")
			continue
		}
		name := slug(m.key, taken)
		spec := map[string]any{}
		var ok bool
		switch kind, _ := words(m.get("type")); kind {
		case "local":
			ok = c.local(at, &m.value, spec)
		case "remote":
			ok = c.remote(at, &m.value, spec)
		default:
			c.leave(at, "its type is neither local nor remote")
		}
		if !ok {
			continue
		}
		taken = append(taken, name)
		c.servers = append(c.servers, server{sanitized(m.key), name})
		objects = append(objects, manifest("Tool", name, spec))
		for _, o := range m.members {
			switch o.key {
			case "type", "enabled", "command", "environment", "url", "headers":
			case "oauth":
				c.leave(at+"/oauth", "declare the login in source.mcp.http.auth: docs/mcp.md")
			default:
				c.leave(at+"/"+escape(o.key), "has no counterpart in a Tool")
			}
		}
	}
	if len(objects) > 0 {
		c.write("tools.yaml", "The MCP servers.", objects...)
	}
}

// sanitized is the name of a server in the names of its functions.
func sanitized(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, name)
}

// local is a server that is started. What is not carried over of its command would
// start something else, so then the server is left out.
func (c *conversion) local(at string, v *value, spec map[string]any) bool {
	command := v.get("command")
	if command == nil || command.kind != list || len(command.items) == 0 {
		c.leave(at, "its command is no list of texts")
		return false
	}
	var argv []any
	for i := range command.items {
		s, ok := words(&command.items[i])
		_, filled := substituted(s)
		switch {
		case !ok:
			c.leave(at, "its command is no list of texts")
			return false
		case filled:
			c.leave(at, "its command holds {env:} or {file:}: hand the value over as a variable")
			return false
		case secretText(s):
			c.leave(at, "its command holds what looks like a secret: hand it over as a variable")
			return false
		}
		argv = append(argv, s)
	}
	spec["source"] = map[string]any{"mcp": map[string]any{"stdio": map[string]any{"command": argv}}}
	c.carry(at, "Tool that starts "+argv[0].(string), "starts in a sandbox without network, with a workspace that is read-only: see network, isolation and workspaceAccess")
	if env := c.references(at+"/environment", v.get("environment"), true); len(env) > 0 {
		spec["env"] = env
	}
	return true
}

func (c *conversion) remote(at string, v *value, spec map[string]any) bool {
	address, ok := words(v.get("url"))
	_, filled := substituted(address)
	u, err := url.Parse(address)
	switch {
	case !ok || filled || err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		c.leave(at, "its url is no address")
		return false
	case u.User != nil || u.RawQuery != "":
		c.leave(at, "its url holds a user or a query, which may be a secret")
		return false
	}
	http := map[string]any{"url": address}
	spec["source"] = map[string]any{"mcp": map[string]any{"http": http}}
	c.carry(at, "Tool at "+u.Host, "")
	if headers := c.references(at+"/headers", v.get("headers"), false); len(headers) > 0 {
		http["headers"] = headers
	}
	return true
}

// references carries variables or headers over that name their value. A value that stands
// in the file is none.
func (c *conversion) references(at string, v *value, variables bool) []any {
	if v == nil {
		return nil
	}
	if v.kind != object {
		c.leave(at, "is no object")
		return nil
	}
	var all []any
	for i := range v.members {
		m := &v.members[i]
		place := at + "/" + escape(m.key)
		s, _ := words(&m.value)
		env, filled := substituted(s)
		switch {
		case variables && !variable(m.key):
			c.leave(place, "is no name of a variable")
		case env != "":
			all = append(all, map[string]any{"name": m.key, "valueFrom": map[string]any{"env": env}})
			c.carry(place, "value of "+env, "")
		case filled:
			c.leave(place, "a value that is put together: keep the whole of it in one variable")
		default:
			c.leave(place, "a value that stands in the file may be a secret: keep it in a variable, and name that")
		}
	}
	return all
}

// secretText reports whether a word of a command looks like a secret.
func secretText(s string) bool {
	low := strings.ToLower(s)
	for _, part := range []string{"token", "secret", "password", "api-key", "api_key", "apikey", "bearer"} {
		if strings.Contains(low, part) {
			return true
		}
	}
	for _, prefix := range []string{"sk-", "ghp_", "github_pat_", "glpat-", "xox", "AKIA", "eyJ"} {
		if strings.HasPrefix(s, prefix) {
			return true
		}
	}
	u, err := url.Parse(s)
	return err == nil && u.User != nil
}
