package tool

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Window is how much of an output the model is shown.
type Window struct {
	Bytes, Lines int
	// KeepHead shows the beginning; otherwise a quarter of the beginning and
	// three quarters of the end, because errors come last and headers first.
	KeepHead bool
}

// Cut returns the part of text that fits, and what was left out. It cuts at
// lines, and inside a line only where that line alone is too long.
func (w Window) Cut(text string) (shown string, lines, bytes int) {
	total := strings.Count(text, "\n")
	if !strings.HasSuffix(text, "\n") {
		total++
	}
	if len(text) <= w.Bytes && total <= w.Lines {
		return text, 0, 0
	}
	if w.KeepHead {
		shown = head(text, w.Bytes, w.Lines)
		return shown, max(0, total-strings.Count(shown, "\n")-1), len(text) - len(shown)
	}
	first := head(text, w.Bytes/4, max(1, w.Lines/4))
	last := tail(text[len(first):], w.Bytes-len(first), max(1, w.Lines-w.Lines/4))
	kept := strings.Count(first, "\n") + strings.Count(last, "\n") + 2
	lines, bytes = max(0, total-kept), len(text)-len(first)-len(last)
	if bytes == 0 { // the two ends meet
		return text, 0, 0
	}
	return first + fmt.Sprintf("\n[... %d lines, %d bytes left out ...]\n", lines, bytes) + last, lines, bytes
}

func head(text string, bytes, lines int) string {
	end := 0
	for range lines {
		next := strings.IndexByte(text[end:], '\n')
		if next < 0 {
			next = len(text) - end
		}
		if end+next > bytes {
			break
		}
		end += next
		if end == len(text) {
			return text
		}
		end++ // the line feed
	}
	if end == 0 { // the first line alone is too long
		end = min(bytes, len(text))
		for end > 0 && !utf8.RuneStart(text[end]) {
			end--
		}
		return text[:end]
	}
	return text[:end-1]
}

func tail(text string, bytes, lines int) string {
	start := len(text)
	for range lines {
		from := strings.LastIndexByte(text[:max(0, start-1)], '\n') + 1
		if len(text)-from > bytes {
			break
		}
		start = from
		if start == 0 {
			return text
		}
	}
	if start == len(text) { // the last line alone is too long
		start = max(0, len(text)-bytes)
		for start < len(text) && !utf8.RuneStart(text[start]) {
			start++
		}
	}
	return text[start:]
}

// footer is the line below an output: what a person would see at a prompt and
// the model cannot.
func footer(exit *int, signal string, took time.Duration, timeout bool, lines, bytes int, blob string) string {
	var facts []string
	if exit != nil {
		facts = append(facts, fmt.Sprintf("exit code %d", *exit))
	}
	if signal != "" {
		facts = append(facts, "signal "+signal)
	}
	if timeout {
		facts = append(facts, "timed out")
	}
	if exit != nil || signal != "" || timeout {
		facts = append(facts, took.Round(time.Millisecond).String())
	}
	if bytes > 0 {
		cut := fmt.Sprintf("%d lines, %d bytes left out", lines, bytes)
		if blob != "" {
			cut += fmt.Sprintf("; read the rest with path %q", BlobPrefix+blob)
		}
		facts = append(facts, cut)
	}
	if len(facts) == 0 {
		return ""
	}
	return "[" + strings.Join(facts, " · ") + "]"
}
