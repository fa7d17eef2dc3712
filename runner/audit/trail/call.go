package trail

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"agentctl.dev/agentctl/api/audit"
	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
)

// call is a tool call until its record is made: what its events say, and not the texts.
type call struct {
	audit.Call
	message string
	place   int
	// asked is when and by which event a question about it was asked, "" by none.
	asked   int64
	started bool
}

// mostFiles bounds the names in a record.
const mostFiles = 100

// given takes the arguments of a call.
func (p *Projection) given(c *call, args []byte) {
	c.ArgsDigest, c.ArgsBytes = p.digest(args), int64(len(args))
	c.TaskPrompt, c.OutputMode, c.TimeoutSeconds = "", "", nil
	prompt := ""
	err := members(args, func(name string, value []byte) bool {
		switch name {
		case "task_prompt":
			c.TaskPrompt = excerpt(unquoted(value))
		case "prompt":
			prompt = excerpt(unquoted(value))
		case "output_mode":
			c.OutputMode = excerpt(unquoted(value))
		case "timeout_seconds":
			var n float64
			if json.Unmarshal(value, &n) == nil {
				c.TimeoutSeconds = &n
			}
		}
		return true
	})
	if err == nil && c.TaskPrompt == "" {
		c.TaskPrompt = prompt
	}
}

// decided takes the policy's answer to a call.
func (p *Projection) decided(c *call, data []byte) error {
	c.Decision, c.Rule, c.RuleSource, c.RiskLevel, c.PolicyWarnings = nil, "", "", "", 0
	return members(data, func(name string, value []byte) bool {
		switch name {
		case "action":
			action := unquoted(value)
			c.Decision = &action
		case "rule":
			c.Rule = unquoted(value)
		case "source":
			c.RuleSource = unquoted(value)
		case "risk":
			c.RiskLevel = unquoted(value)
		case "warnings":
			var all []json.RawMessage
			_ = json.Unmarshal(value, &all) // what is not a list has no warnings
			c.PolicyWarnings = len(all)
		}
		return true
	})
}

// ended takes the result of a call.
func (p *Projection) ended(c *call, state message.ToolState, seq int64, data []byte) error {
	c.State = string(state)
	var metadata []byte
	var refs References
	writes, cut := false, false
	err := members(data, func(name string, value []byte) bool {
		switch name {
		case "text":
			c.ResultDigest, c.ResultBytes = p.digest(value), length(value)
		case "output":
			c.OutputLen = length(value)
		case "exitCode":
			var code int
			if json.Unmarshal(value, &code) == nil {
				c.ExitCode = &code
			}
		case "code":
			c.Error = unquoted(value)
		case "blob":
			cut = true
			refs.Blobs = append(refs.Blobs, unquoted(value))
		case "attachments":
			c.EvidenceRefs = []string{p.event(seq)}
			refs.files(value)
		case "durationMicros":
			var micros int64
			if json.Unmarshal(value, &micros) == nil {
				c.DurationMs = (micros + 500) / 1000
			}
		case "writes":
			writes = string(value) == "true"
		case "metadata":
			metadata = value
		case "child":
			refs.Child = child(value)
			c.ChildRun = refs.Child.Run
		case "coding":
			refs.coding(value)
		}
		return true
	})
	if cut {
		c.EvidenceRefs = []string{p.event(seq)}
	}
	c.limits(cut)
	if refs.Seq = seq; p.refers != nil {
		p.refers(refs)
	}
	if len(metadata) > 0 {
		c.reported(metadata, writes)
	}
	return err
}

// limits lists the limits that the call has met.
func (c *call) limits(cut bool) {
	switch message.ErrorCode(c.Error) {
	case message.CodeTimeout:
		c.Limits = append(c.Limits, "timeout")
	case message.CodeOutputLimit:
		if !c.started {
			c.Limits = append(c.Limits, "calls_per_answer")
			break
		}
		cut = true
	case message.CodeLoop:
		c.Limits = append(c.Limits, "loop_guard")
	default: // the call failed for another reason, or did not
	}
	if cut {
		c.Limits = append(c.Limits, "output")
	}
}

// reported takes what a tool says of a call in its metadata, under the names that audits
// use, or as JSON of other programs is spelled. What has another form is left out.
func (c *call) reported(metadata []byte, writes bool) {
	var own, listed []string
	_ = members(metadata, func(name string, value []byte) bool {
		switch name {
		case "stdout_len", "stdoutLen":
			c.StdoutLen = whole(value)
		case "stderr_len", "stderrLen":
			c.StderrLen = whole(value)
		case "changed_files", "changedFiles":
			listed = paths(value)
		case "diff_summary", "diffSummary":
			c.DiffSummary = excerpt(unquoted(value))
		case "tool_version", "toolVersion", "version":
			c.ToolVersion = excerpt(unquoted(value))
		case "opencode_version":
			c.OpencodeVersion = excerpt(unquoted(value))
		case "evidence_refs", "evidenceRefs":
			refs := paths(value)
			c.EvidenceRefs = append(c.EvidenceRefs, refs[:min(len(refs), mostFiles)]...)
		case "path":
			if path := unquoted(value); writes && path != "" {
				own = append(own, path)
			}
		case "files":
			if writes {
				own = append(own, paths(value)...)
			}
		}
		return true
	})
	if listed == nil {
		listed = own
	}
	if listed != nil {
		n := len(listed)
		c.ChangedFiles, c.ChangedFilesCount = listed[:min(n, mostFiles)], &n
	}
}

// whole is a whole number, nil if a value is none.
func whole(value []byte) *int64 {
	var n int64
	if json.Unmarshal(value, &n) != nil {
		return nil
	}
	return &n
}

// paths are those in a list of strings, or of objects with a path; nil if a value is none.
func paths(value []byte) []string {
	var all []json.RawMessage
	if json.Unmarshal(value, &all) != nil {
		return nil
	}
	found := []string{}
	for _, one := range all {
		var o struct {
			Path string `json:"path"`
		}
		path := unquoted(one)
		if path == "" && json.Unmarshal(one, &o) == nil {
			path = o.Path
		}
		if path != "" {
			found = append(found, path)
		}
	}
	return found
}

// refused reports whether the call was judged and did not run because of that.
func (c *call) refused() bool {
	return c.State == string(message.StateError) && !c.started && c.Decision != nil &&
		(c.Error == string(message.CodeDenied) || c.Error == string(message.CodeRejected))
}

// maxName is the length of a call name.
const maxName = 64

// eventType is that of the record of a call. The name of a tool that does not exist is the
// model's text.
func eventType(tool string) string {
	if tool == "" || len(tool) > maxName || strings.Trim(tool, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" {
		return "tool.unknown"
	}
	return "tool." + tool
}

// named is a tool's name as a record has it.
func named(tool string) string {
	if eventType(tool) == "tool.unknown" {
		return excerpt(tool)
	}
	return tool
}

// open are the calls that have no result yet, in the order in which they were begun. Those
// that never came as far as the policy are left out.
func (p *Projection) open() []*call {
	var all []*call
	for _, c := range p.calls {
		if c.Decision != nil || c.started {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b *call) int { return a.place - b.place })
	return all
}

func (p *Projection) event(seq int64) string { return fmt.Sprintf("run/%s#%d", p.run, seq) }

// millis is a time of an event in milliseconds since 1970; 0 for one of another form.
func millis(stamp string) int64 {
	at, err := time.Parse(event.TimeFormat, stamp)
	if err != nil {
		return 0
	}
	return at.UnixMilli()
}
