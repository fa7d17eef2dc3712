package model

import (
	"fmt"
	"math"
	"math/bits"
	"strings"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
)

// Cost is the price of an answer in picodollars (1e-12 USD). A price in
// microdollars per million tokens is the same number in picodollars per token,
// so the arithmetic is whole numbers throughout.
//
// Cache reads and writes without a price of their own cost what input costs. A
// price that is missing while there are tokens to pay is an error: an unknown
// price is not zero.
func Cost(p v1alpha1.Pricing, u message.Usage) (int64, error) {
	items := []struct {
		name   string
		price  v1alpha1.Money
		tokens int64
	}{
		{"input", p.Input, u.Input},
		{"cacheRead", firstOf(p.CacheRead, p.Input), u.CacheRead},
		{"cacheWrite", firstOf(p.CacheWrite, p.Input), u.CacheWrite},
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
	return int64(sum), nil
}

func firstOf(a, b v1alpha1.Money) v1alpha1.Money {
	if a != "" {
		return a
	}
	return b
}

// FormatUSD writes picodollars as a decimal amount in US dollars, exactly, with
// at least two decimals: "0.000104", "2.00".
func FormatUSD(pico int64) string {
	sign, n := "", uint64(pico)
	if pico < 0 {
		sign, n = "-", -n
	}
	const dollar = 1_000_000_000_000
	frac := strings.TrimRight(fmt.Sprintf("%012d", n%dollar), "0")
	for len(frac) < 2 {
		frac += "0"
	}
	return fmt.Sprintf("%s%d.%s", sign, n/dollar, frac)
}

// Money is an amount in the form of the API, which has six decimals: rounded up,
// so that a sum never looks cheaper than it was.
func Money(pico int64) v1alpha1.Money {
	const micro = 1_000_000
	if rest := pico % micro; rest > 0 && pico <= math.MaxInt64-micro {
		pico += micro - rest
	}
	return v1alpha1.Money(FormatUSD(pico - pico%micro))
}
