package price

import (
	_ "embed"
	"strconv"
	"strings"

	"agentctl.dev/agentctl/api/v1alpha1"
)

// columns is how many a line of the table has.
const columns = 17

//go:embed models.csv
var table string

// Entry is one line of the snapshot. What is not known is empty or 0.
type Entry struct {
	Provider v1alpha1.Provider
	Model    string
	Price    Price
	// ContextWindow is what the model holds, MaxInput what a request may have where
	// that is less, MaxOutput what an answer may have.
	ContextWindow, MaxInput, MaxOutput int64
	// Capabilities are some of tools, images, pdf, reasoning, structuredOutput.
	Capabilities []string
	// AsOf is a day on which all of it held, as 2006-01-02.
	AsOf string
	// Source is where it is published.
	Source string
}

// All returns the whole snapshot in its order: by provider, the newest first.
func All() []Entry {
	var all []Entry
	for line := range strings.Lines(table) {
		if e, ok := parse(line); ok {
			all = append(all, e)
		}
	}
	return all
}

func parse(line string) (e Entry, ok bool) {
	f := strings.Split(strings.TrimSpace(line), ",")
	if strings.HasPrefix(line, "#") || len(f) != columns {
		return Entry{}, false
	}
	whole := func(text string) int64 {
		if text == "" {
			return 0
		}
		n, err := strconv.ParseInt(text, 10, 64)
		ok = ok && err == nil && n > 0
		return n
	}
	ok = true
	e = Entry{
		Provider: v1alpha1.Provider(f[0]), Model: f[1], Capabilities: strings.Fields(f[14]), AsOf: f[15], Source: f[16],
		Price:         Price{Pricing: pricing(f[2:6]), LongAbove: whole(f[6]), Long: pricing(f[7:11])},
		ContextWindow: whole(f[11]), MaxInput: whole(f[12]), MaxOutput: whole(f[13]),
	}
	return e, ok
}

func pricing(f []string) v1alpha1.Pricing {
	return v1alpha1.Pricing{Input: v1alpha1.Money(f[0]), CacheRead: v1alpha1.Money(f[1]), CacheWrite: v1alpha1.Money(f[2]), Output: v1alpha1.Money(f[3])}
}
