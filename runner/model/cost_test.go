package model

import (
	"math"
	"testing"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
)

func TestCost(t *testing.T) {
	one := v1alpha1.Pricing{Input: "1", Output: "2", CacheRead: "0.1", CacheWrite: "1.25"}
	cases := map[string]struct {
		reason string
		price  v1alpha1.Pricing
		usage  message.Usage
		want   message.Cost
		bad    bool
	}{
		"check value":     {"60 input, 15 output and 5 reasoning, 40 cached cost 0.000104", one, message.Usage{Input: 60, Output: 20, Reasoning: 5, CacheRead: 40}, 104_000_000, false},
		"cache writes":    {"writes have a price of their own", one, message.Usage{CacheWrite: 4}, 5_000_000, false},
		"cache as input":  {"without one, cache reads and writes cost what input costs", v1alpha1.Pricing{Input: "3"}, message.Usage{CacheRead: 1, CacheWrite: 1}, 6_000_000, false},
		"smallest":        {"nothing is rounded", v1alpha1.Pricing{Input: "0.000001"}, message.Usage{Input: 1}, 1, false},
		"nothing":         {"no tokens cost nothing, whatever is unknown", v1alpha1.Pricing{}, message.Usage{}, 0, false},
		"free":            {"a price of 0 is a price", v1alpha1.Pricing{Input: "0", Output: "0"}, message.Usage{Input: 9, Output: 9}, 0, false},
		"negative":        {"a negative count is none", one, message.Usage{Input: -5}, 0, false},
		"unknown price":   {"an unknown price is not zero", v1alpha1.Pricing{Input: "1"}, message.Usage{Output: 1}, 0, true},
		"malformed price": {"a price must be a decimal", v1alpha1.Pricing{Input: "cheap"}, message.Usage{Input: 1}, 0, true},
		"overflow":        {"a sum beyond counting is an error", v1alpha1.Pricing{Input: "999999999"}, message.Usage{Input: math.MaxInt64}, 0, true},
		"sum overflow":    {"also when only the sum is", v1alpha1.Pricing{Input: "1", Output: "1"}, message.Usage{Input: 9e12, Output: 9e12}, 0, true},
	}
	for name, c := range cases {
		got, err := Cost(c.price, c.usage)
		if got != c.want || (err != nil) != c.bad {
			t.Errorf("%s: %s: got %d, %v", name, c.reason, got, err)
		}
	}
}

func TestCostInDollars(t *testing.T) {
	for pico, want := range map[int64]string{
		104_000_000: "0.000104", 0: "0.00", 2_000_000_000_000: "2.00", 1_500_000_000_000: "1.50",
		1: "0.000000000001", -104_000_000: "-0.000104", math.MaxInt64: "9223372.036854775807", math.MinInt64: "-9223372.036854775808",
	} {
		if got := message.Cost(pico).String(); got != want {
			t.Errorf("Cost(%d) = %s, want %s", pico, got, want)
		}
	}
}
