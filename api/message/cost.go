package message

import (
	"fmt"
	"math"
	"strings"
)

// Cost is an amount of money in picodollars (1e-12 USD), whole numbers
// throughout: a price in microdollars per million tokens is the same number in
// picodollars per token. In JSON it is a decimal amount of dollars as a string.
type Cost int64

// dollar is one US dollar.
const dollar Cost = 1_000_000_000_000

// decimals a Cost can have.
const decimals = 12

// Dollars is the amount in US dollars, rounded to what a float64 holds.
func (c Cost) Dollars() float64 { return float64(c) / float64(dollar) }

// String is the exact decimal amount in US dollars with at least two decimals:
// "0.000104", "2.00".
func (c Cost) String() string {
	sign, n := "", uint64(c)
	if c < 0 {
		sign, n = "-", -n
	}
	frac := strings.TrimRight(fmt.Sprintf("%012d", n%uint64(dollar)), "0")
	for len(frac) < 2 {
		frac += "0"
	}
	return fmt.Sprintf("%s%d.%s", sign, n/uint64(dollar), frac)
}

// MarshalText writes the decimal amount.
func (c Cost) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads a decimal amount of at most twelve decimals.
func (c *Cost) UnmarshalText(b []byte) error {
	text, negative := strings.CutPrefix(string(b), "-")
	whole, frac, point := strings.Cut(text, ".")
	if whole == "" || point && frac == "" || len(frac) > decimals {
		return fmt.Errorf("%q is not an amount of dollars with at most %d decimals", b, decimals)
	}
	limit := uint64(math.MaxInt64)
	if negative {
		limit++
	}
	var n uint64
	for _, d := range whole + frac + strings.Repeat("0", decimals-len(frac)) {
		digit := uint64(d - '0')
		switch {
		case d < '0' || d > '9':
			return fmt.Errorf("%q is not an amount of dollars", b)
		case n > (limit-digit)/10:
			return fmt.Errorf("%q dollars are too much to count", b)
		}
		n = n*10 + digit
	}
	*c = Cost(n)
	if negative {
		*c = -*c
	}
	return nil
}

// Add returns the sum. One beyond counting is the largest amount there is, so
// that it stays above every limit.
func (c Cost) Add(d Cost) Cost {
	switch sum := c + d; {
	case c > 0 && d > 0 && sum < 0:
		return math.MaxInt64
	case c < 0 && d < 0 && sum >= 0:
		return math.MinInt64
	default:
		return sum
	}
}
