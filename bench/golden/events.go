package main

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// occurrence is an event as it stands in a journal or on stdout.
type occurrence struct {
	Type string          `json:"type"`
	Run  string          `json:"run,omitempty"`
	Msg  string          `json:"message,omitempty"`
	Part string          `json:"part,omitempty"`
	Call string          `json:"call,omitempty"`
	Data json.RawMessage `json:"data"`
}

// parseEvents reads a text in which every line is an event.
func parseEvents(text string) ([]occurrence, bool) {
	var all []occurrence
	for line := range strings.Lines(text) {
		var e occurrence
		if json.Unmarshal([]byte(line), &e) != nil || e.Type == "" || e.Run == "" {
			return nil, false
		}
		all = append(all, e)
	}
	return all, len(all) > 0
}

// steady writes events without what depends on the moment: number, time and hash of a
// line, where the pieces of a text are split, which of two parallel calls was
// quicker.
func steady(all []occurrence) string {
	var b strings.Builder
	for _, e := range ordered(joined(settled(all))) {
		line, err := json.Marshal(e)
		if err != nil {
			line = []byte(err.Error())
		}
		b.Write(line)
		b.WriteByte('\n')
	}
	return b.String()
}

// settled leaves out the progress of calls that a timer may or may not have seen,
// and puts the snapshot of the files, which is taken beside the first answer, behind
// the beginning.
func settled(all []occurrence) []occurrence {
	var out, snapshots []occurrence
	long := map[string]bool{}
	for _, e := range all {
		var d struct{ DurationMicros int64 }
		if strings.HasPrefix(e.Type, "tool.") && json.Unmarshal(e.Data, &d) == nil && d.DurationMicros > 1_500_000 {
			long[e.Call] = true
		}
	}
	progress := map[string]bool{}
	for _, e := range all {
		switch {
		case e.Type == "workspace.snapshot":
			snapshots = append(snapshots, e)
		case e.Type != "tool.progress":
			out = append(out, e)
		case long[e.Call] && !progress[e.Call]:
			progress[e.Call] = true
			e.Data = json.RawMessage(`{"text":"progress"}`)
			out = append(out, e)
		}
	}
	at := min(1, len(out))
	return slices.Insert(out, at, snapshots...)
}

// joined puts pieces of one part that follow each other together.
func joined(all []occurrence) []occurrence {
	var out []occurrence
	for _, e := range all {
		last := len(out) - 1
		if strings.HasSuffix(e.Type, ".delta") || strings.HasSuffix(e.Type, "-delta") {
			if last >= 0 && out[last].Type == e.Type && out[last].Part == e.Part && out[last].Call == e.Call {
				out[last].Data = join(out[last].Data, e.Data)
				continue
			}
		}
		out = append(out, e)
	}
	return out
}

func join(a, b json.RawMessage) json.RawMessage {
	var x, y map[string]any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return a
	}
	was, _ := x["text"].(string)
	more, _ := y["text"].(string)
	for k, v := range y {
		x[k] = v
	}
	x["text"] = was + more
	out, err := json.Marshal(x)
	if err != nil {
		return a
	}
	return out
}

// ordered groups what happens to the calls of one answer by call, in the order of
// the answer: calls that run at the same time end in any order.
func ordered(all []occurrence) []occurrence {
	var out []occurrence
	for i := 0; i < len(all); {
		if all[i].Type != "model.response" {
			out = append(out, all[i])
			i++
			continue
		}
		out = append(out, all[i])
		i++
		var rest []occurrence
		var order []string
		calls := map[string][]occurrence{}
		for ; i < len(all) && all[i].Type != "step.finish" && all[i].Type != "run.resumed" && all[i].Type != "model.request"; i++ {
			e := all[i]
			if e.Call == "" {
				rest = append(rest, e)
				continue
			}
			if calls[e.Call] == nil {
				order = append(order, e.Call)
			}
			calls[e.Call] = append(calls[e.Call], e)
		}
		for _, c := range order {
			out = append(out, calls[c]...)
		}
		out = append(out, rest...)
	}
	return out
}

// steadyLines puts the lines of a text about a run into an order that does not depend
// on the moment: those of the story that tell of calls, where several follow each
// other, and those of "agentctl events".
func steadyLines(text string) string {
	lines := strings.SplitAfter(text, "\n")
	var out []string
	for i := 0; i < len(lines); {
		j := i
		for j < len(lines) && isCall(lines[j]) {
			j++
		}
		if j > i {
			slices.Sort(lines[i:j])
			out = append(out, lines[i:j]...)
			i = j
			continue
		}
		for j < len(lines) && listed(lines[j]) != "" {
			j++
		}
		if j > i {
			out = append(out, steadyList(lines[i:j])...)
			i = j
			continue
		}
		out = append(out, lines[i])
		i++
	}
	return strings.Join(out, "")
}

// isCall reports whether a line is about a call, such as
// "  read      R0  allow   completed    8.9ms  README.md".
func isCall(line string) bool {
	f := strings.Fields(colour().ReplaceAllString(line, ""))
	return strings.HasPrefix(line, "  ") && len(f) > 3 && len(f[1]) == 2 && f[1][0] == 'R'
}

// colour is what a terminal reads as a colour.
var colour = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("\x1b\\[[0-9;]*m") })

// listed is the type of an event that "agentctl events" lists on a line, such as
// "   10  CLOCK  workspace.snapshot  3 files".
func listed(line string) string {
	f := strings.Fields(line)
	if len(f) < 3 || f[1] != "CLOCK" || strings.Trim(f[0], "0123456789") != "" {
		return ""
	}
	return f[2]
}

// steadyList leaves out the numbers of listed events, and orders them as those of a
// journal.
func steadyList(lines []string) []string {
	var all []occurrence
	for _, l := range lines {
		f := strings.Fields(l)
		e := occurrence{Type: f[2], Msg: strings.Join(f[2:], " ") + "\n"}
		if len(f) > 3 && strings.HasPrefix(f[3], "call_") {
			e.Call = f[3]
		}
		all = append(all, e)
	}
	var out []string
	for _, e := range ordered(settled(all)) {
		out = append(out, e.Msg)
	}
	return out
}
