package approval

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// facts are what a policy has found out about a call, as far as we have words
// for it.
type facts struct {
	Paths []struct {
		Raw         string `json:"raw"`
		Clean       string `json:"clean"`
		Real        string `json:"real"`
		InWorkspace bool   `json:"inWorkspace"`
		Op          string `json:"op"`
		Secret      bool   `json:"secret"`
		Links       int    `json:"links"`
	} `json:"paths"`
	Commands []string `json:"commands"`
	Network  struct {
		Hosts   []string `json:"hosts"`
		Ports   []int    `json:"ports"`
		Schemes []string `json:"schemes"`
	} `json:"network"`
	Anywhere bool     `json:"anywhere"`
	Dynamic  bool     `json:"dynamic"`
	Reasons  []string `json:"reasons"`
	Opaque   []string `json:"opaque"`
	Audit    []string `json:"audit"`
}

// writeFacts describes what a call would do, one fact a line. Facts that these lines
// cannot express are shown as JSON: nothing is left out.
func writeFacts(b *bytes.Buffer, raw json.RawMessage) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	var f facts
	if d.Decode(&f) != nil {
		var pretty bytes.Buffer
		if json.Indent(&pretty, raw, "", "  ") != nil {
			pretty.Reset()
			pretty.Write(raw)
		}
		writeIndented(b, "    ", "as data", pretty.String())
		return
	}
	for _, c := range f.Commands {
		writeIndented(b, "    ", "runs", c)
	}
	seen := map[string]bool{}
	for i := range f.Paths {
		p := &f.Paths[i]
		text := p.Raw
		switch {
		case p.Real == "?":
			text += "   (only the run can tell where that is)"
		case !p.InWorkspace:
			text += "   (outside the workspace: " + p.Real + ")"
		case p.Real != p.Clean:
			text += "   (leads to " + p.Real + ")"
		}
		if p.Links > 1 {
			text += "   (one of " + strconv.Itoa(p.Links) + " names of the file)"
		}
		if p.Secret {
			text += "   (a file that holds secrets)"
		}
		op, ok := operations[p.Op]
		if !ok {
			op = p.Op
		}
		if !seen[op+text] {
			seen[op+text] = true
			writeIndented(b, "    ", op, text)
		}
	}
	if n := &f.Network; len(n.Hosts)+len(n.Ports)+len(n.Schemes) > 0 {
		words := append(append([]string{}, n.Hosts...), n.Schemes...)
		for _, port := range n.Ports {
			words = append(words, "port "+strconv.Itoa(port))
		}
		writeIndented(b, "    ", "reaches", strings.Join(words, ", "))
	}
	if f.Anywhere {
		writeIndented(b, "    ", "reaches", "hosts that it does not name")
	}
	if f.Dynamic && len(f.Reasons) == 0 {
		f.Reasons = []string{"more than can be said"}
	}
	for _, r := range f.Reasons {
		writeIndented(b, "    ", "only the run can tell", r)
	}
	for _, o := range f.Opaque {
		writeIndented(b, "    ", "may do anything", o)
	}
	for _, a := range f.Audit {
		writeIndented(b, "    ", "audit", a)
	}
}

var operations = map[string]string{"read": "reads", "write": "writes", "delete": "deletes", "execute": "may use"}
