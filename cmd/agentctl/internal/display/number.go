package display

import (
	"fmt"
	"strconv"
	"time"

	"agentctl.dev/agentctl/api/message"
)

// duration is a length of time as people read it: <0.1ms, 0.4ms, 12ms, 1.2s, 2m03s.
func duration(d time.Duration) string {
	switch {
	case d < 50*time.Microsecond:
		return "<0.1ms"
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.1fms", float64(d)/float64(time.Millisecond))
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
}

// count is a number with separators: 12,345.
func count(n int64) string {
	s := strconv.FormatInt(n, 10)
	start := 0
	if n < 0 {
		start = 1
	}
	for i := len(s) - 3; i > start; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// plural is a number with its noun: 1 step, 2 steps.
func plural(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return count(n) + " " + noun + "s"
}

func cost(usd *message.Cost) string {
	if usd == nil {
		return "cost unknown"
	}
	return "$" + usd.String()
}
