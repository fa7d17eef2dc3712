package tool

import (
	"cmp"
	"encoding/json"
	"net/url"
	"strings"

	"agentctl.dev/agentctl/api/message"
)

// cameFrom is where the result of a call comes from: a server, where one answers it, or
// else the tool.
func (d *Definition) cameFrom(args json.RawMessage) *message.Origin {
	o := &message.Origin{Kind: message.OriginTool, Name: d.Name}
	if o.Server = cmp.Or(d.Remote, d.asked(args)); o.Server != "" {
		o.Kind = message.OriginServer
	}
	return o
}

// asked is the host of the address that a call or its Tool names; "" where none is named.
func (d *Definition) asked(args json.RawMessage) string {
	text := d.Server
	if d.URL != "" {
		var fields map[string]any
		if json.Unmarshal(args, &fields) != nil {
			return ""
		}
		text, _ = fields[d.URL].(string)
	}
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Host)
}
