package model

import (
	"strconv"
	"strings"

	"agentctl.dev/agentctl/api/v1alpha1"
)

// columns is how many a line of a catalog has:
//
//	model,input,cacheRead,cacheWrite,output,longAbove,longInput,longCacheRead,longCacheWrite,longOutput,contextWindow,maxInput,maxOutput,capabilities,asOf,source
//
// Prices are list prices in US dollars per million tokens in the standard tier,
// limits are tokens. An empty column is not known; a cache without a price of its
// own costs what input costs. Requests of more than longAbove tokens of input, the
// cache's included, cost what the long columns say. MaxInput is given where it is
// less than the window. AsOf is a day on which the row held. Reasoning is paid as
// output. Lines that begin with # are comments.
const columns = 16

// CatalogEntry is what is known about one model. What is not known is empty or 0.
type CatalogEntry struct {
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

// ParseCatalog reads the models of a provider in their order, the newest first.
func ParseCatalog(provider v1alpha1.Provider, catalog string) []CatalogEntry {
	var all []CatalogEntry
	for line := range strings.Lines(catalog) {
		if e, ok := parseEntry(provider, line); ok {
			all = append(all, e)
		}
	}
	return all
}

func parseEntry(provider v1alpha1.Provider, line string) (e CatalogEntry, ok bool) {
	f := strings.Split(strings.TrimSpace(line), ",")
	if strings.HasPrefix(line, "#") || len(f) != columns {
		return CatalogEntry{}, false
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
	e = CatalogEntry{
		Provider: provider, Model: f[0], Capabilities: strings.Fields(f[13]), AsOf: f[14], Source: f[15],
		Price:         Price{Pricing: pricing(f[1:5]), LongAbove: whole(f[5]), Long: pricing(f[6:10])},
		ContextWindow: whole(f[10]), MaxInput: whole(f[11]), MaxOutput: whole(f[12]),
	}
	return e, ok
}

func pricing(f []string) v1alpha1.Pricing {
	return v1alpha1.Pricing{Input: v1alpha1.Money(f[0]), CacheRead: v1alpha1.Money(f[1]), CacheWrite: v1alpha1.Money(f[2]), Output: v1alpha1.Money(f[3])}
}
