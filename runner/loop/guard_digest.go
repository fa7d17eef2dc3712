package loop

import (
	"encoding/json"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"agentctl.dev/agentctl/api/message"
)

const (
	// tellingBytes is the size from which an equal result of a similar call means
	// that nothing new was learned; many different questions have the answer "ok".
	// A failure needs fewer.
	tellingBytes, tellingFailure = 24, 20
	// waitTime is how long a call that succeeds must run to count as a wait.
	waitTime = 2 * time.Second
	// statusBytes bounds the results that are searched for words that mean
	// waiting.
	statusBytes = 256
	// wordsBytes bounds the arguments that are compared by words; longer
	// arguments are content, and compared as a whole.
	wordsBytes = 2048
)

// outcome is what came of a call, as far as results are compared. Durations,
// times of day and addresses are left out: they differ each time and mean
// nothing.
type outcome struct {
	known bool
	exact uint64 // of the text with its figures
	rough uint64 // of the words alone
	// telling results are long enough to be recognised without their call.
	telling               bool
	failed, waits, writes bool
}

func newOutcome(r *message.ToolResult) outcome {
	text := r.Output
	if text == "" && r.Failed() {
		text = r.Text
	}
	failed := r.Failed() || r.ExitCode != nil && *r.ExitCode != 0
	o := outcome{known: true, failed: failed, writes: r.Writes}
	o.exact, o.rough = digest(text)
	code := string(r.Code)
	if r.ExitCode != nil && *r.ExitCode != 0 {
		code += " " + sentence("exit %d", *r.ExitCode)
	}
	o.exact, o.rough = mix(o.exact, code), mix(o.rough, code)
	for _, f := range r.Attachments { // another image is another result
		o.exact, o.rough = mix(o.exact, f.URL), mix(o.rough, f.URL)
	}
	o.telling = len(text) >= tellingBytes || failed && len(text) >= tellingFailure
	long := time.Duration(r.DurationMicros)*time.Microsecond >= waitTime
	status := len(text) <= statusBytes
	if failed {
		// A failure alone does not wait. A failure that took its time and names
		// something that another process uses now is worth another try.
		o.waits = long && status && (says(text, pendingWords) || says(text, busyWords))
	} else {
		o.waits = long || status && says(text, pendingWords)
	}
	return o
}

func mix(sum uint64, text string) uint64 {
	const prime = 1099511628211
	for i := range len(text) {
		sum = (sum ^ uint64(text[i])) * prime
	}
	return sum
}

// digest returns a hash of a text without what differs each time, and one without
// any figures.
func digest(text string) (exact, rough uint64) {
	e, r := fnv.New64a(), fnv.New64a()
	both := func(s string) { _, _ = e.Write([]byte(s)); _, _ = r.Write([]byte(s)) }
	for i := 0; i < len(text); {
		j := i
		for j < len(text) && isWord(text[j]) {
			j++
		}
		if j == i {
			for j < len(text) && !isWord(text[j]) {
				j++
			}
			both(text[i:j])
			i = j
			continue
		}
		word := text[i:j]
		switch {
		case !strings.ContainsAny(word, "0123456789"):
			both(word)
		case isClock(text, i, &j), isDuration(text, i, &j), isAddress(word):
			both("~")
		default:
			_, _ = e.Write([]byte(word))
			_, _ = r.Write([]byte("#"))
		}
		i = j
	}
	return e.Sum64(), r.Sum64()
}

func isWord(b byte) bool {
	return b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b == '_' || b >= 0x80
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

func digits(text string, i int) int {
	for i < len(text) && isDigit(text[i]) {
		i++
	}
	return i
}

// isClock recognises a time of day, 12:34 or 12:34:56.789, and a date, 2026-01-02,
// and sets end behind it.
func isClock(text string, i int, end *int) bool {
	j := digits(text, i)
	if j == i || j-i > 4 || j >= len(text) || text[j] != ':' && (text[j] != '-' || j-i != 4) {
		return false
	}
	separator, parts := text[j], 1
	for j < len(text) && text[j] == separator && j+1 < len(text) && isDigit(text[j+1]) {
		k := digits(text, j+1)
		if k-j-1 != 2 {
			return false
		}
		j, parts = k, parts+1
	}
	if separator == '-' && parts != 3 || parts < 2 || parts > 3 {
		return false
	}
	if j+1 < len(text) && separator == ':' && (text[j] == '.' || text[j] == ',') && isDigit(text[j+1]) {
		j = digits(text, j+1)
	}
	if separator == '-' && j+1 < len(text) && text[j] == 'T' && isDigit(text[j+1]) { // RFC 3339: the time is next
		j++
	}
	if j < len(text) && isWord(text[j]) && !isDigit(text[j]) && text[j] != 'Z' {
		return false
	}
	*end = j
	return true
}

var units = []string{"ns", "us", "µs", "ms", "s", "sec", "secs", "second", "seconds", "min", "mins", "minutes"}

// isDuration recognises 12ms, 0.04s and 3.2 seconds, and sets end behind it.
func isDuration(text string, i int, end *int) bool {
	j := digits(text, i)
	if j == i {
		return false
	}
	if j+1 < len(text) && text[j] == '.' && isDigit(text[j+1]) {
		j = digits(text, j+1)
	}
	if j < len(text) && text[j] == ' ' {
		j++
	}
	k := j
	for k < len(text) && isWord(text[k]) && !isDigit(text[k]) {
		k++
	}
	if !slices.Contains(units, text[j:k]) {
		return false
	}
	*end = k
	return true
}

// isAddress recognises hexadecimal ids and addresses: 0xc000123, a commit.
func isAddress(word string) bool {
	hex := strings.TrimPrefix(word, "0x")
	if len(hex) < 7 {
		return false
	}
	letters := len(hex) != len(word)
	for i := range len(hex) {
		switch b := hex[i]; {
		case isDigit(b):
		case b >= 'a' && b <= 'f':
			letters = true
		default:
			return false
		}
	}
	return letters
}

// pendingWords show that work is in progress that the next call may find
// completed.
var pendingWords = []string{
	"pending", "running", "progress", "in_progress", "queued", "waiting", "starting", "creating", "containercreating", "building",
	"processing", "provisioning", "initializing", "unfinished", "still", "wait", "deploying", "scheduled", "not ready", "not yet",
}

// busyWords mean that something, or its server, is in use for now.
var busyWords = []string{
	"lock", "locked", "busy", "temporarily", "try again", "again later", "rate limit", "too many requests", "refused", "overloaded", "unavailable",
}

// says reports whether a text contains one of the words.
func says(text string, words []string) bool {
	text = strings.ToLower(text)
	for _, word := range words {
		for rest := text; ; {
			i := strings.Index(rest, word)
			if i < 0 {
				break
			}
			end := i + len(word)
			if (i == 0 || !isWord(rest[i-1])) && (end == len(rest) || !isWord(rest[end])) {
				return true
			}
			rest = rest[end:]
		}
	}
	return false
}

// waitWords in a call mean that it waits.
var waitWords = map[string]bool{"sleep": true, "usleep": true, "wait": true, "await": true, "watch": true, "poll": true}

// cosmeticWords are left out of a shell command: they change how it is shown, not
// what it does.
var cosmeticWords = map[string]bool{
	"dev": true, "null": true, "echo": true, "true": true, "cat": true, "head": true, "tail": true, "tee": true,
	"sh": true, "bash": true, "sudo": true, "time": true, "set": true, "pipefail": true, "please": true, "retry": true, "try": true, "again": true,
}

// cosmeticFields of arguments are for people, or bound the call.
var cosmeticFields = map[string]bool{
	"description": true, "explanation": true, "reason": true, "comment": true, "title": true, "thought": true, "timeout": true,
}

// callWords returns two hashes of the words of a call, and whether the call
// waits. Both ignore the order of the words and the cosmetic ones; the second
// also ignores numbers and options. Calls that differ in spacing, quotes,
// redirections, comments of one word or a time limit have equal words.
func callWords(tool string, args json.RawMessage) (exact, rough uint64, waits bool) {
	e, r := map[string]bool{}, map[string]bool{}
	var value any
	if len(args) > wordsBytes || json.Unmarshal(args, &value) != nil {
		h := fnv.New64a()
		_, _ = h.Write(append([]byte(tool+"\x00"), args...))
		return h.Sum64(), mix(h.Sum64(), "rough"), false
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, member := range v {
				if !cosmeticFields[strings.ToLower(key)] {
					walk(member)
				}
			}
		case []any:
			for _, member := range v {
				walk(member)
			}
		case string:
			split(v, e, r)
		default:
			text := sentence("%v", v)
			e[text] = true
		}
	}
	walk(value)
	for _, word := range strings.FieldsFunc(strings.ToLower(tool), func(c rune) bool { return c == '_' || c == '-' || c == '.' }) {
		waits = waits || waitWords[word]
	}
	for word := range e {
		waits = waits || waitWords[word]
	}
	return sumOf(tool, e), mix(sumOf(tool, r), "rough"), waits
}

// split adds the words of a text to both sets.
func split(text string, exact, rough map[string]bool) {
	for i := 0; i < len(text); {
		if !isWord(text[i]) {
			i++
			continue
		}
		j := i
		for j < len(text) && isWord(text[j]) {
			j++
		}
		word := strings.ToLower(text[i:j])
		option := text[max(0, i-1):i] == "-" && (i == 1 || text[i-2] == ' ' || text[i-2] == '-')
		if !cosmeticWords[word] {
			exact[word] = true
			if bare := strings.Trim(word, "0123456789"); bare != "" && !option {
				rough[bare] = true
			}
		}
		i = j
	}
}

func sumOf(tool string, set map[string]bool) uint64 {
	list := make([]string, 0, len(set))
	for word := range set {
		list = append(list, word)
	}
	slices.Sort(list)
	h := fnv.New64a()
	_, _ = h.Write([]byte(tool + "\x00" + strings.Join(list, "\x00")))
	return h.Sum64()
}
