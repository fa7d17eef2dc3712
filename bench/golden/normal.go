package main

import (
	_ "embed"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/aymanbagabas/go-udiff"
)

// substitution is something that differs from run to run of one build.
type substitution struct {
	pattern, with string
	// numbered gives each value a number in the order of appearance, so that a value
	// that stands at two places has to do so in both builds.
	numbered bool
	reason   string
}

// substitutions are all that is normalised, beside the order of parallel calls
// (ordered), the split of texts (joined), and the progress that a timer reports
// (settled). They are applied in this order.
func substitutions() []substitution {
	return []substitution{
		{`\b01[0-9a-hjkmnp-tv-z]{24}\b`, "ULID", true, "ids of runs, messages and parts hold a time and random bits"},
		{`-01[0-9a-hjkmnp-tv-z]{4,23}\b`, "-ULID-PREFIX", false, "tables cut ids"},
		{`sha256:[0-9a-f]{64}`, "HASH", true, "hashes cover ids, times and the programs themselves"},
		{`\b[0-9a-f]{64}\b`, "HEX64", true, "the same without a prefix"},
		{`\b[0-9a-f]{40}\b`, "HEX40", true, "commits of git hold a time"},
		{`\b[0-9a-f]{32}\b`, "HEX32", true, "the key of the digests in an audit log is random"},
		{`\bv?0\.0\.0-[0-9]{14}-[0-9a-f]{12}(\+dirty)?`, "(devel)", false, "the builds are of two commits, or of none"},
		{`\b20[0-9]{2}-[0-9]{2}-[0-9]{2}([T ][0-9:]+(\.[0-9]+)?(Z|[+-][0-9:]{5,6})?)?`, "TIME", false, "times"},
		{`\b[0-2][0-9]:[0-5][0-9]:[0-5][0-9](\.[0-9]+)?\b`, "CLOCK", false, "times of the day"},
		{`\b[0-9a-f]{24}\b`, "HEX24", true, "states of a workspace cover the times in its files"},
		{`,"firstByteMs":[0-9]+`, "", false, "a duration that is left out when it is 0"},
		{`"(durationMs|durationMicros|duration_ms|waited_ms)":( ?)[0-9]+`, `"$1":${2}0`, false, "durations"},
		{`\bdurationMs: [0-9]+`, "durationMs: 0", false, "durations in YAML"},
		{`\([0-9]+[smh] ago\)`, "(AGE)", false, "ages"},
		{`the nearest are: .*`, "the nearest are: NAMES", false, "how near a name is depends on the random bits of ids"},
		{`"(before|after)":[0-9]+`, `"$1":TOKENS`, false, "estimates of tokens count the digits of durations in outputs"},
		{`[0-9,]+ → [0-9,]+ tokens`, "TOKENS", false, "the same, shown"},
		{`"estimate":\{"input":[0-9]+`, `"estimate":{"input":TOKENS`, false, "the same, of a request"},
		{`about [0-9,]+ tokens`, "about TOKENS", false, "the same, shown"},
		{`"waitMillis":[0-9]+`, `"waitMillis":0`, false, "the wait before another request has a random part"},
		{`"(time|start|end|startedAt|postedAt|expiresAt|createdAt)": ?1[0-9]{12}\b`, `"$1":MILLIS`, false, "times in milliseconds"},
		{` +[0-9]+(\.[0-9]+)?(µs|ms)\b *`, " DURATION ", false, "durations shown in texts and columns"},
		{` +(<?[0-9]+\.[0-9]+|[0-9]+)(s|ms)\b *`, " DURATION ", false, "the same above a second, and ages"},
		{`\(<?[0-9.]+(µs|ms|s),`, "(DURATION,", false, "the same in brackets"},
		{`\btime="[0-9.]+"`, `time="0"`, false, "durations in JUnit reports"},
		{`(127\.0\.0\.1|localhost|\[::1\]):[0-9]{4,5}\b`, "$1:PORT", false, "free ports"},
		{`\b(process|pid) [0-9]+`, "$1 PID", false, "ids of processes"},
		{`/proc/[0-9]+`, "/proc/PID", false, "ids of processes"},
		{`\b(agentctl-[a-z]+-)[0-9]{6,10}\b`, "${1}RANDOM", false, "names of temporary folders"},
		{`(\\n|\b)[0-9]+ [0-9]+ [0-9]+:[0-9]+ /`, "${1}MOUNT /", false, "ids of mounts and of devices without a disk"},
		{`/containers/[0-9a-z]+(-[0-9a-z]+)+/`, "/containers/ID/", false, "ids of images and containers"},
		{`(real-time non-blocking time +\(microseconds, -R\)) [0-9]+`, "$1 N", false, "bash prints memory that it has not set where a kernel has no such limit"},
		{`/snapshots/[0-9]+/`, "/snapshots/N/", false, "containerd counts its snapshots"},
	}
}

var compiled = sync.OnceValue(func() []*regexp.Regexp {
	var all []*regexp.Regexp
	for _, s := range substitutions() {
		all = append(all, regexp.MustCompile(s.pattern))
	}
	return all
})

// normal writes a text so that it is the same for each run of one build. Values are
// numbered last: in the order of lines that does not depend on the moment.
func normal(text string) string {
	for i, s := range substitutions() {
		if !s.numbered {
			text = compiled()[i].ReplaceAllString(text, s.with)
		}
	}
	text = steadyLines(text)
	for i, s := range substitutions() {
		if !s.numbered {
			continue
		}
		numbers := map[string]int{}
		text = compiled()[i].ReplaceAllStringFunc(text, func(v string) string {
			if numbers[v] == 0 {
				numbers[v] = len(numbers) + 1
			}
			return fmt.Sprintf("%s%d", s.with, numbers[v])
		})
	}
	return text
}

// renamedTexts are the texts that differ on purpose: a line is "old => new".
//
//go:embed renamed.txt
var renamedTexts string

type renaming struct{ old, new string }

func renamings() ([]renaming, error) {
	var all []renaming
	n := 0
	for line := range strings.Lines(renamedTexts) {
		n++
		line = strings.TrimSuffix(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		was, is, ok := strings.Cut(line, " => ")
		if !ok || was == "" {
			return nil, fmt.Errorf("renamed.txt:%d: %q is not of the form old => new", n, line)
		}
		all = append(all, renaming{was, is})
	}
	return all, nil
}

func rename(text string, all []renaming) string {
	for _, r := range all {
		text = strings.ReplaceAll(text, r.old, r.new)
	}
	return text
}

// difference is a unified diff.
func difference(was, is string) string { return udiff.Unified("old", "new", was, is) }
