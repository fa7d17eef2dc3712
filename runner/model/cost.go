package model

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
)

// Cost is the price of an answer. A price in microdollars per million tokens is
// the same number in picodollars per token, so the arithmetic is whole numbers
// throughout.
//
// Cache reads and writes without a price of their own cost what input costs. A
// price that is missing while there are tokens to pay is an error: an unknown
// price is not zero.
func Cost(p v1alpha1.Pricing, u message.Usage) (message.Cost, error) {
	items := []struct {
		name   string
		price  v1alpha1.Money
		tokens int64
	}{
		{"input", p.Input, u.Input},
		{"cacheRead", cmp.Or(p.CacheRead, p.Input), u.CacheRead},
		{"cacheWrite", cmp.Or(p.CacheWrite, p.Input), u.CacheWrite},
		{"output", p.Output, u.Output},
	}
	var sum uint64
	for _, i := range items {
		if i.tokens <= 0 {
			continue
		}
		if i.price == "" {
			return 0, fmt.Errorf("price of %d %s tokens: pricing.%s is not given", i.tokens, i.name, i.name)
		}
		micros, err := i.price.Micros()
		if err != nil {
			return 0, fmt.Errorf("pricing.%s: %w", i.name, err)
		}
		hi, lo := bits.Mul64(uint64(i.tokens), uint64(micros))
		total, carry := bits.Add64(sum, lo, 0)
		if hi != 0 || carry != 0 || total > math.MaxInt64 {
			return 0, fmt.Errorf("price of %d %s tokens: more than can be counted", i.tokens, i.name)
		}
		sum = total
	}
	return message.Cost(sum), nil
}
